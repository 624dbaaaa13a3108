"""The store of runs: save, find, query and check them."""
