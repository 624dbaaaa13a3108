"""Numbers of finished runs: groups, means, intervals, comparisons, curves. No charts, no HTML."""
