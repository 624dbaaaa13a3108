"""Figures of finished runs, one file each: what it shows, and its chart."""
