"""Costs of a plan: profiles, forecasts, and savings by sharing."""
