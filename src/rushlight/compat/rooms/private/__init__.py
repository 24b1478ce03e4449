"""Modules of PyTorch whose names begin with an underscore, and of which libraries import small things."""
