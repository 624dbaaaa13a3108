"""Streams of corrupted images."""
