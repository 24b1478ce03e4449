"""Kernels of images and volumes along their spatial dimensions: resizing."""
