"""States of NumPy in files: read where the user allows the classes they are made of, refused elsewhere."""

import io
import pickle
from typing import Any

import numpy as np
import pytest
from numpy._core import multiarray

import rushlight as torch

DTYPES = [getattr(np.dtypes, name) for name in dir(np.dtypes) if name.endswith("DType")]
ALLOWED = [np.ndarray, multiarray._reconstruct, multiarray.scalar, np.dtype, *DTYPES]
VALUES: dict[str, Any] = {
    "a state of the generator": np.random.RandomState(0).get_state(),
    "an array": np.arange(6.0).reshape(2, 3),
    "an array in Fortran's order": np.asfortranarray(np.ones((2, 3), np.int16)),
    "records": np.zeros(2, dtype=[("a", "i4"), ("b", "f8")]),
    "a scalar": np.float32(2.5),
    "a dtype": np.dtype("uint32"),
}


def written(value: Any, protocol: int = 2) -> io.BytesIO:
    file = io.BytesIO()
    torch.save({"value": value, "weight": torch.ones(1)}, file, pickle_protocol=protocol)
    file.seek(0)
    return file


@pytest.mark.parametrize("protocol", [2, 4])
@pytest.mark.parametrize("what", VALUES)
def test_allowed_classes_are_read(what: str, protocol: int) -> None:
    with torch.serialization.safe_globals(ALLOWED):
        found = torch.load(written(VALUES[what], protocol))["value"]
    assert type(found) is type(VALUES[what])
    assert repr(found) == repr(VALUES[what])


@pytest.mark.parametrize("what", VALUES)
def test_trusted_files_are_read(what: str) -> None:
    assert repr(torch.load(written(VALUES[what]), weights_only=False)["value"]) == repr(VALUES[what])


@pytest.mark.parametrize("what", VALUES)
def test_by_default_they_are_refused(what: str) -> None:
    with pytest.raises(pickle.UnpicklingError, match="not an allowed global by default"):
        torch.load(written(VALUES[what]))


def test_a_dtype_whose_own_class_is_not_allowed_is_refused_by_name() -> None:
    with (
        torch.serialization.safe_globals([np.dtype]),
        pytest.raises(pickle.UnpicklingError, match=r"numpy.*UInt32DType"),
    ):
        torch.load(written(np.dtype("uint32")))


def test_layouts_are_written_as_pytorch_writes_them() -> None:
    assert torch.load(written(torch.strided))["value"] is torch.strided
