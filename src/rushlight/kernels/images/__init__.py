"""Kernels of images and volumes along their spatial dimensions: resizing, maxima of windows that lie anywhere, padding."""
