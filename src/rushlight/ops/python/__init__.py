"""Tensors among Python's objects: operators, protocols, text, and the names under which other code knows operators."""
