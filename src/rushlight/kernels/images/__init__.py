"""Kernels of images and volumes along their spatial dimensions: resizing, and maxima of windows that lie anywhere."""
