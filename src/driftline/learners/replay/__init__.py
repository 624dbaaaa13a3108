"""Methods that replay a buffer of earlier samples."""
