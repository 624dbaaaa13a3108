"""Methods that adapt to unlabeled inputs, batch by batch."""
