"""What a run keeps: recorder, reader, Parquet tables."""
