"""The engine runs a spec: planning, stages, executors and costs."""
