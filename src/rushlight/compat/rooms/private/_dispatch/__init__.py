"""``torch._dispatch``: how PyTorch dispatches in Python."""
