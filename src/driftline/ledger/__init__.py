"""The ledger: published tables and figures compared with results of this package."""
