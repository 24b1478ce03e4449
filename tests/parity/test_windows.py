"""Windows have PyTorch's values."""

import numpy as np
import pytest

import rushlight

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity


@pytest.mark.parametrize("name", ["hann", "hamming", "blackman", "bartlett", "kaiser"])
@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-6), ("float64", 1e-14)])  # PyTorch rounds at each step
@pytest.mark.parametrize("periodic", [True, False])
def test_values_are_those_of_pytorch(name: str, dtype: str, tolerance: float, periodic: bool) -> None:
    for length in (0, 1, 2, 3, 7, 8, 100):
        ours = getattr(rushlight, f"{name}_window")(length, periodic, dtype=getattr(rushlight, dtype))
        theirs = getattr(torch, f"{name}_window")(length, periodic, dtype=getattr(torch, dtype))
        assert str(ours.dtype) == str(theirs.dtype) and tuple(ours.shape) == tuple(theirs.shape)
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), atol=tolerance, rtol=0)
