"""Charts of answers: one file per kind of chart that a benchmark can ask for."""
