"""Methods that learn from one label at a time."""
