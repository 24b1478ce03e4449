"""Operators along dimensions: sums, extrema, norms, running results, order, sets and histograms."""
