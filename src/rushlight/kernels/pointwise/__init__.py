"""Kernels of each element that NumPy makes of many passes: exponential linear units, slopes by channel, functions of two variables,
distances of rows."""
