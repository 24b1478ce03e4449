"""Kernels as built-in functions of Python: every signature has its adapter, and what cannot be taken is refused."""

from __future__ import annotations

import ctypes
import importlib
import pkgutil
import sys
from types import BuiltinFunctionType
from typing import Any

import numpy as np
import pytest

from rushlight import kernels
from rushlight.kernels.native import loader, signatures

pytestmark = pytest.mark.skipif(not loader.tables(), reason="the native kernels cannot be built here")


def every_kernel() -> dict[str, Any]:
    for module in pkgutil.walk_packages(kernels.__path__, "rushlight.kernels."):
        importlib.import_module(module.name)  # each declares its own
    tables = {
        "f32": signatures.SIGNATURES,
        "bytes": signatures.BYTES,
        "f16": signatures.HALVES | signatures.MAPS | signatures.ROWS,
    }
    return {f"rl_{name}_{suffix}": letters for suffix, named in tables.items() for name, letters in named.items()}


def test_every_signature_has_an_adapter() -> None:
    """Where this fails, its types go into `Signatures` of functions.cpp: ctypes calls the kernel meanwhile."""
    lib = loader._library
    wanting = {
        letters
        for name, letters in every_kernel().items()
        if not isinstance(loader._function(lib, name, letters), BuiltinFunctionType)
    }
    wanting |= {
        letters
        for letters in {*signatures.BFLOAT16.values(), *signatures.TILES.values(), *signatures.FLOAT16.values()}
        if not isinstance(loader._function(lib, "rl_abi", letters), BuiltinFunctionType)
    }
    assert not wanting, sorted(wanting)


def test_letters_without_an_adapter_are_called_by_ctypes() -> None:
    function = loader._function(loader._library, "rl_erf_f32", "aani" + "n" * 20)
    assert isinstance(function, ctypes._CFuncPtr)


def sign() -> Any:
    return loader.tables()[np.dtype(np.float32)].sign


def test_a_kernel_takes_arrays_and_lets_go_of_them() -> None:
    x, out = np.array([-1.0, 2.0], np.float32), np.empty(2, np.float32)
    before = sys.getrefcount(x), sys.getrefcount(out)
    assert sign()(x, out, 2) is None
    assert out.tolist() == [-1.0, 1.0]
    assert (sys.getrefcount(x), sys.getrefcount(out)) == before
    assert sign()(x, out, np.int64(2)) is None


def test_a_size_is_returned() -> None:
    counts = loader.tables()["bytes"].digest(np.zeros(3, np.uint8), 3, 7)
    assert type(counts) is int


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ((), TypeError, "expected 3 arguments of a native kernel, got 0"),
        ((None, None, None, None), TypeError, "expected 3 arguments of a native kernel, got 4"),
        ((np.zeros(2, np.float32), np.zeros(2, np.float32), 2.0), TypeError, "integer"),
        ((np.zeros(2, np.float32), np.zeros(2, np.float32), 1 << 70), OverflowError, "fit"),
        ((np.zeros(2, np.float32), np.zeros(2, np.float64), 2), RuntimeError, "another dtype"),
        (([1.0], np.zeros(1, np.float32), 1), RuntimeError, "an array"),
    ],
)
def test_what_cannot_be_taken_is_refused(given: tuple[Any, ...], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        sign()(*given)
