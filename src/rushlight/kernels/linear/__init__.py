"""Kernels of linear algebra: factors, and solving with them."""
