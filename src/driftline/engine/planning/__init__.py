"""From a spec to the stages it needs."""
