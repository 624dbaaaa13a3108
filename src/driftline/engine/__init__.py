"""How runs are executed: a spec becomes stages, and stages are computed once, in this process or in workers."""
