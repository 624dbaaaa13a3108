"""Progress of a running sweep, as text for `driftline watch`."""
