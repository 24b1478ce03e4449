"""What `tools/replay.py` runs and writes down; its modules are used by that tool alone."""
