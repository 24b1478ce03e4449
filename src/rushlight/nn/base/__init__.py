"""What every module is made of: its registers, state, hooks, conversions, and the walk through its children."""
