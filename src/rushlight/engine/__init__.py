"""The reverse-mode engine: nodes, saved tensors, runs, in-place changes and modes."""
