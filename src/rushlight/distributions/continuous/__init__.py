"""Distributions of one real number, for which there is a density."""
