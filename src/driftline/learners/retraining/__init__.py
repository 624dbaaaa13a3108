"""Policies that decide when to retrain."""
