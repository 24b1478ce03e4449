"""Kernels of losses over all ways to a target: connectionist temporal classification."""
