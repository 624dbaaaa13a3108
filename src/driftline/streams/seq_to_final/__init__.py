"""Sequences of shifts."""
