"""Streams of errors from shifting clusters."""
