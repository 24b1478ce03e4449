"""Operators that move elements: views, joins, copies in another order, padding."""
