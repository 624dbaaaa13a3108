"""From a spec to results: planning, stages, executors and costs."""
