"""What a plan costs: profiles, forecasts, and what sharing saves."""
