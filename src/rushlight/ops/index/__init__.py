"""Operators that read and write at indices and where masks are true."""
