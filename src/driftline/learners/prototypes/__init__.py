"""Methods that classify by class vectors."""
