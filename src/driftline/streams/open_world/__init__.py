"""Streams of single samples with new classes."""
