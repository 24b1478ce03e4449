"""Modules of PyTorch that libraries import and scripts seldom use: `compat.aliases` says under which names."""
