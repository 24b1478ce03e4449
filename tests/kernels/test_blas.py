"""The choice of BLAS's core type: before NumPy, after NumPy, the user's own; and products."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tests.processes import printed

from rushlight import cpu
from rushlight.backends import blas
from rushlight.kernels.matrices import matmul

ROOT = str(Path(blas.__file__).parents[2])
wide = pytest.mark.skipif(
    blas.wanted_core() is None or blas.core_type() is None, reason="no AVX-512 here, or another BLAS than OpenBLAS"
)


def python(code: str, **environment: str) -> str:
    env = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS")}
    env |= {"PYTHONPATH": ROOT, **environment}
    return printed("-W", "error", "-c", code, env=env).strip()


AFTER = """
import os, sys
{first}
from rushlight.backends import blas
blas.prepare()
import numpy as np
assert not [k for k in os.environ if k.startswith('OPENBLAS') and k not in {kept!r}]
a = np.random.default_rng(0).standard_normal((130, 170)); b = a.T.copy()
np.testing.assert_allclose(a @ b, np.einsum('ij,jk->ik', a, b), rtol=1e-9, atol=1e-10)
print(blas.core_type(), '/', blas.info()['how'])
"""


@wide
def test_chosen_before_numpy_loads() -> None:
    core, how = python(AFTER.format(first="", kept=())).split(" / ")
    assert core == "SkylakeX" and "before NumPy" in how


@wide
def test_corrected_after_numpy_has_loaded() -> None:
    first = "import numpy; del os.environ['OPENBLAS_CORETYPE']"
    core, how = python(AFTER.format(first=first, kept=()), OPENBLAS_CORETYPE="Haswell").split(" / ")
    if hasattr(blas.library(), "gotoblas_dynamic_init"):
        assert core == "SkylakeX" and how == "corrected from Haswell after NumPy had loaded it"
    else:  # NumPy 2.5's OpenBLAS exports nothing but BLAS
        assert (
            core == "Haswell"
            and how == "chosen by the library, which cannot be corrected: import rushlight before numpy"
        )


@wide
def test_not_corrected_while_other_threads_run() -> None:
    first = """
import numpy, threading
del os.environ['OPENBLAS_CORETYPE']
threading.Thread(target=threading.Event().wait, daemon=True).start()
"""
    core, how = python(AFTER.format(first=first, kept=()), OPENBLAS_CORETYPE="Haswell").split(" / ")
    assert core == "Haswell" and "other threads ran" in how


@wide
def test_the_users_choice_stands() -> None:
    kept = ("OPENBLAS_CORETYPE",)
    core, how = python(AFTER.format(first="", kept=kept), OPENBLAS_CORETYPE="Haswell").split(" / ")
    assert core == "Haswell" and "set by the user" in how


def test_importing_it_imports_no_numpy() -> None:
    # the file alone: the package around it imports NumPy, under prepare()
    code = f"""
import sys, types, importlib.util
def load(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
sys.modules['rushlight'] = types.ModuleType('rushlight')
sys.modules['rushlight'].cpu = load('rushlight.cpu', {cpu.__file__!r})
blas = load('rushlight.backends.blas', {blas.__file__!r})
blas.wanted_core()
print('numpy' in sys.modules, 'ctypes' in sys.modules)
"""
    assert python(code) == "False False"


def test_info_is_complete() -> None:
    found = blas.info()
    assert {"library", "version", "core", "wanted", "right", "threads", "how"} <= set(found)


def test_threads_can_be_set() -> None:
    before = blas.get_num_threads()
    if before is None:
        pytest.skip("this BLAS cannot be asked")
    assert blas.set_num_threads(1) and blas.get_num_threads() == 1
    blas.set_num_threads(before)
    assert blas.get_num_threads() == before


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "i8", np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize(
    ("a", "b"),
    [((3, 4), (4, 5)), ((4,), (4,)), ((4,), (4, 2)), ((2, 4), (4,)), ((5, 1, 3, 4), (2, 4, 6)), ((0, 3), (3, 2))],
)
def test_products(a: tuple[int, ...], b: tuple[int, ...], dtype: Any) -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-4, 5, shape).astype(dtype) for shape in (a, b))
    out = matmul(x, y)
    want = np.matmul(x.astype("c16"), y.astype("c16"))
    assert out.dtype == x.dtype and out.shape == want.shape
    np.testing.assert_array_equal(np.asarray(out).astype("c16"), want)


def test_products_of_strided_matrices() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((300, 400)), rng.standard_normal((400, 600))
    want = x[:, ::2] @ y[::2, ::3]
    for left in (x[:, ::2], np.asfortranarray(x[:, ::2]), x.T[::2].T):
        np.testing.assert_allclose(matmul(left, y[::2, ::3]), want, rtol=1e-12, atol=1e-12)
    wide = np.broadcast_to(x[:1, :200], (300, 200))
    np.testing.assert_allclose(matmul(wide, y[::2]), wide.copy() @ y[::2], rtol=1e-12, atol=1e-12)
    out = np.empty((300, 200))
    assert matmul(x[:, ::2], y[::2, ::3], out=out) is out
