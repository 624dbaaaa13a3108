"""Adaptation to changing corruptions without labels."""
