"""Backends: what operators compute with.  Importing this package imports nothing."""
