"""Operators on windows of images: convolutions, pooling, unfolding, resizing, sampling at a grid."""
