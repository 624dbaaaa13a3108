"""The benchmarks, one package each: stream, revealed labels, probes and scores."""
