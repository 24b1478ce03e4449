"""Attention: scaled dot products, and several heads over projections."""
