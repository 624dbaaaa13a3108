"""The record of a run: recorder, reader, card and Parquet tables."""
