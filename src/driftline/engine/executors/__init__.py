"""Executors compute stages; the scheduler decides in which order."""
