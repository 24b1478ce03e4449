"""What counting floating-point operations knows: formulas, and which calls operators are to a counter."""
