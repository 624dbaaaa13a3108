"""The twelve networks of Seq-to-Final.

Ji, Alaa and Sontag, "Seq-to-Final: A Benchmark for Tuning from Sequential Distributions to a Final Time Point", 2024.
"""
