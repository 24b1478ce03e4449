"""Recordings as files: written and read in the format of PyTorch's memory viewer."""
