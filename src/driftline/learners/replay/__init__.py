"""Methods that correct their errors and replay a buffer."""
