"""The kernels in plain NumPy: what the native ones are tested against, and what runs without a compiler."""
