"""Recordings as people read them: pages, text, notebooks."""
