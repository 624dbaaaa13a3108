"""The command line: `driftline …`."""
