"""Kernels of each element that NumPy makes of many passes: exponential and gated linear units, slopes by channel, errors of
pairs, functions of two variables, distances of rows."""
