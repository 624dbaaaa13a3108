"""Planning: the stages that a spec needs."""
