"""Operators that make each element of the result from the elements at its place."""
