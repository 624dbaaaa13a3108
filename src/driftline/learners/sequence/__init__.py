"""Methods that plan fits over a sequence of time steps (Seq-to-Final)."""
