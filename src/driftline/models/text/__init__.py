"""Text models: encoders, generators, tokenizer."""
