"""Settings of what compiles: accepted, without effect."""

suppress_errors = False
cache_size_limit = 8
recompile_limit = 8
verbose = False
capture_scalar_outputs = False
capture_dynamic_output_shape_ops = False
