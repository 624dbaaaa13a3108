"""The benchmarks: each one file that chooses stream, reveal, probes and scores."""
