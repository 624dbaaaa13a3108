"""A sequence of shifts, scored at its last step."""
