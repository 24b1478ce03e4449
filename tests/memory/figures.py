"""Whose figures a test holds memory to."""

import pytest

from rushlight.kernels.native import loader

# The references in NumPy, which take their place without them, have other temporaries.
native = pytest.mark.skipif(not loader.tables(), reason="the figures are those of the native kernels")
