"""Text that commands print."""
