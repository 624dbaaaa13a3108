"""Where runs are stored, found, queried and checked."""
