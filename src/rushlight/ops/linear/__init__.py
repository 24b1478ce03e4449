"""Linear algebra: products, decompositions, Fourier transforms, distances."""
