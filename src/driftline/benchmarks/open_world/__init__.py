"""One sample at a time, with new classes."""
