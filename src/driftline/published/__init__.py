"""Numbers that papers published, one CSV file per benchmark."""
