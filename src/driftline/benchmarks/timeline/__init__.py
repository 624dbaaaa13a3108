"""Train at t, test at every later period."""
