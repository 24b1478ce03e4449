"""C++ twins of the reference kernels, compiled on first use where a compiler is found."""
