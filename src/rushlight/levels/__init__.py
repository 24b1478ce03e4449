"""Levels: active interpreters that operators defer to."""
