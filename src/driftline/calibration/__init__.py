"""Accuracy of a model under pairs of corruptions, for streams of constant difficulty (CCC)."""
