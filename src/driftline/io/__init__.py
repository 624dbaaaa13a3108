"""Files: atomic writes, serialization, checksums, files and code that users name."""
