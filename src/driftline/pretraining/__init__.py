"""Ways to train the upstream model."""
