"""How models are trained, asked and measured; nothing here knows of streams or benchmarks."""
