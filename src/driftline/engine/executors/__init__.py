"""Where stages are computed, and in which order."""
