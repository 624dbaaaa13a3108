"""Training, prediction and measurement of models, independent of streams and benchmarks."""
