"""The twelve networks of Seq-to-Final."""
