"""Distributions of counts and categories, and those relaxed to real numbers."""
