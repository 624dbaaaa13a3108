"""Methods that plan fits over a sequence of time steps.

Ji, Alaa and Sontag, "Seq-to-Final: A Benchmark for Tuning from Sequential Distributions to a Final Time Point", 2024.
"""
