"""Methods that treat windows of time as domains."""
