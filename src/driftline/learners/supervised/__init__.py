"""Methods that train on the labels of a period when they arrive."""
