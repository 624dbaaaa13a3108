"""Stages as tasks of a Ray cluster, whose machines need not share a disk."""
