"""`torch.testing._internal.common_utils`: test cases, parametrized tests and what they are made with."""

from __future__ import annotations

import contextlib
import copy
import functools
import gc
import importlib
import io
import itertools
import os
import random
import tempfile
import time
import unittest
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

import rushlight as torch
from rushlight.basics.caller import settings as warning_settings
from rushlight.basics.devices import device
from rushlight.basics.dtypes import dtype
from rushlight.testing._internal.comparing import compared
from rushlight.testing._internal.conditions import *  # noqa: F403
from rushlight.testing._internal.conditions import SEED, TEST_WITH_SLOW_GRADCHECK
from rushlight.testing._internal.matrices import *  # noqa: F403
from rushlight.testing._internal.parametrizing import (
    _TestParametrizer as _TestParametrizer,
)
from rushlight.testing._internal.parametrizing import (
    decorateIf as decorateIf,
)
from rushlight.testing._internal.parametrizing import (
    instantiate_parametrized_tests as instantiate_parametrized_tests,
)
from rushlight.testing._internal.parametrizing import (
    parametrize as parametrize,
)
from rushlight.testing._internal.parametrizing import (
    reparametrize as reparametrize,
)
from rushlight.testing._internal.parametrizing import (
    subtest as subtest,
)
from rushlight.testing.creation import make_tensor as make_tensor

try:
    _Base: Any = importlib.import_module("expecttest").TestCase
except ImportError:
    _Base = unittest.TestCase

numpy_to_torch_dtype_dict = {
    np.bool_: torch.bool, np.uint8: torch.uint8, np.int8: torch.int8, np.int16: torch.int16, np.int32: torch.int32,
    np.int64: torch.int64, np.float16: torch.float16, np.float32: torch.float32, np.float64: torch.float64,
    np.complex64: torch.complex64, np.complex128: torch.complex128,
}  # fmt: skip
torch_to_numpy_dtype_dict = {value: key for key, value in numpy_to_torch_dtype_dict.items()} | {
    torch.bfloat16: np.float32
}
coalescedonoff: Any = parametrize("coalesced", [True, False])


class TestCase(_Base):  # type: ignore[misc]
    """A test case that seeds the generators before each test, and compares tensors with `assertEqual`."""

    precision, rel_tol = 0.0, 0.0
    maxDiff = None
    longMessage = True

    def setUp(self) -> None:
        """Seed the generators."""
        set_rng_seed(SEED)

    def assertEqual(
        self, x: Any, y: Any, msg: Any = None, *, atol: float | None = None, rtol: float | None = None, equal_nan: bool = True,
        exact_dtype: bool = True, exact_device: bool = False, exact_layout: bool = False, exact_stride: bool = False,
        exact_is_coalesced: bool = False,
    ) -> None:  # fmt: skip
        """Fail unless the two are equal, or close where they hold numbers.

        x, y: tensors, arrays, numbers, or sequences and mappings of them; a tensor may be compared with an array, a number or
        a list. msg: added to the message, or a function of it. Without `atol` and `rtol` they follow from the dtypes, and are
        at least the class's `precision` and `rel_tol`.
        """
        __tracebackhide__ = True
        rules = {"atol": atol, "rtol": rtol, "equal_nan": equal_nan, "exact_dtype": exact_dtype,
                 "exact_device": exact_device, "exact_layout": exact_layout, "exact_stride": exact_stride,
                 "precision": self.precision, "rel_tol": self.rel_tol}  # fmt: skip
        try:
            compared(x, y, (), rules)
        except AssertionError as error:
            said = str(error)
            raise self.failureException(
                msg(said) if callable(msg) else said if msg is None else f"{said}\n{msg}"
            ) from None

    def assertNotEqual(
        self, x: Any, y: Any, msg: object = None, *, atol: Any = None, rtol: Any = None, **kwargs: Any
    ) -> None:
        """Fail if `assertEqual` passes."""
        try:
            self.assertEqual(x, y, atol=atol, rtol=rtol, **kwargs)
        except AssertionError:
            return
        raise self.failureException(msg or f"{x!r} and {y!r} are equal")

    def assertEqualIgnoreType(self, *args: Any, **kwargs: Any) -> None:
        """`assertEqual` of any dtypes."""
        self.assertEqual(*args, exact_dtype=False, **kwargs)

    def assertEqualTypeString(self, x: Any, y: Any) -> None:
        """Fail unless device, dtype and class are the same."""
        self.assertEqual((str(x.device), x.dtype, type(x)), (str(y.device), y.dtype, type(y)))

    def assertObjectIn(self, obj: object, iterable: Iterable[Any]) -> None:
        """Fail unless the object itself is among those of `iterable`."""
        if not any(obj is each for each in iterable):
            raise AssertionError("object not found in iterable")

    def assertExpectedRaisesInline(
        self, exc_type: Any, callable: Callable[..., Any], expect: str, *args: object, **kwargs: object
    ) -> None:
        """Fail unless the call raises that error with that message."""
        try:
            callable(*args, **kwargs)
        except exc_type as error:
            self.assertExpectedInline(str(error), expect, skip=1)
            return
        self.fail(msg="Did not raise when expected to")

    def assertNotWarn(self, callable: Callable[[], Any], msg: str = "") -> None:
        """Fail if the call warns."""
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            callable()
            self.assertTrue(len(found) == 0, msg)

    @contextlib.contextmanager
    def assertWarnsOnceRegex(self, category: Any, regex: str = "") -> Iterator[None]:
        """Fail unless the block warns, once, in these words."""
        with set_warn_always_context(True), self.assertWarnsRegex(category, regex) as found:
            yield
        if len([w for w in found.warnings if issubclass(w.category, category)]) > 1:
            raise AssertionError(f"caught {len(found.warnings)} warnings, expected one")

    @contextlib.contextmanager
    def maybeWarnsRegex(self, category: Any, regex: str = "") -> Iterator[None]:
        """Let the block warn in these words, or not at all."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=regex, category=category)
            yield

    def compare_with_reference(self, torch_fn: Any, ref_fn: Any, sample_input: Any, **kwargs: Any) -> None:
        """Compare a function with a reference, both given a sample's input and arguments."""
        args = (sample_input.input, *sample_input.args)
        self.assertEqual(torch_fn(*args, **sample_input.kwargs), ref_fn(*args, **sample_input.kwargs), **kwargs)

    def compare_with_numpy(
        self,
        torch_fn: Any,
        np_fn: Any,
        tensor_like: object,
        device: device | str | int | None = None,
        dtype: dtype | None = None,
        **kwargs: Any,
    ) -> None:
        """Compare a function of a tensor with one of an array."""
        t = (
            tensor_like
            if isinstance(tensor_like, torch.Tensor)
            else torch.tensor(tensor_like, device=device, dtype=dtype)
        )
        array = (t.float() if t.dtype == torch.bfloat16 else t).detach().numpy()
        expected = np_fn(array)
        self.assertEqual(torch_fn(t), torch.from_numpy(np.asarray(expected)), exact_dtype=False, **kwargs)

    def safeToDense(self, t: Any) -> Any:
        """A sparse tensor as a dense one, coalesced first."""
        return t.coalesce().to_dense()

    def wrap_with_cuda_policy(self, method_name: str, policy: object) -> None:
        """Nothing: there is no CUDA."""


def run_tests(argv: list[str] | None = None) -> None:
    """Run the tests of the script that calls it, as `unittest.main` does."""
    unittest.main(argv=argv)


# Settings for a while ----------------------------------------------------------------------------------------------


def set_rng_seed(seed: int | None = None) -> None:
    """Seed the generators of torch, Python and NumPy."""
    seed = SEED if seed is None else seed
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)  # what tests draw from


@contextlib.contextmanager
def freeze_rng_state(*args: object, **kwargs: object) -> Iterator[None]:
    """Let the block draw without that anything after it draws other numbers."""
    state = torch.get_rng_state()
    try:
        yield
    finally:
        torch.set_rng_state(state)


@contextlib.contextmanager
def set_default_dtype(dtype: Any) -> Iterator[None]:
    """Another default dtype within the block."""
    former = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(former)


@contextlib.contextmanager
def set_default_tensor_type(tensor_type: object) -> Iterator[None]:
    """Another default dtype within the block, by the name of a tensor type."""
    with set_default_dtype(torch.get_default_dtype()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.set_default_tensor_type(tensor_type)
        yield


@contextlib.contextmanager
def set_warn_always_context(new_val: bool) -> Iterator[None]:
    """Warnings that come once come each time within the block."""
    former = warning_settings["always"]
    torch.set_warn_always(new_val)
    try:
        yield
    finally:
        torch.set_warn_always(former)


@contextlib.contextmanager
def disable_gc() -> Iterator[None]:
    """No garbage collection within the block."""
    former = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if former:
            gc.enable()


class DeterministicGuard:
    """Deterministic algorithms, or none, within a block."""

    def __init__(self, deterministic: bool, *, warn_only: bool = False, fill_uninitialized_memory: bool = True) -> None:
        self.wanted = (deterministic, warn_only, fill_uninitialized_memory)

    def _set(self, mode: bool, warn_only: bool, fill: bool) -> None:
        torch.use_deterministic_algorithms(mode, warn_only=warn_only)
        torch.utils.deterministic.fill_uninitialized_memory = fill

    def __enter__(self) -> None:
        self.former = (torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled(),
                       torch.utils.deterministic.fill_uninitialized_memory)  # fmt: skip
        self._set(*self.wanted)

    def __exit__(self, *error: object) -> None:
        self._set(*self.former)


def wrapDeterministicFlagAPITest(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Put the determinism of algorithms back after a test."""

    @functools.wraps(fn)
    def run(*args: Any, **kwargs: Any) -> Any:
        with DeterministicGuard(torch.are_deterministic_algorithms_enabled()):
            return fn(*args, **kwargs)

    return run


@contextlib.contextmanager
def TemporaryFileName(*args: Any, **kwargs: Any) -> Iterator[str]:
    """The name of a temporary file."""
    handle, name = tempfile.mkstemp(*args, **kwargs)
    os.close(handle)
    try:
        yield name
    finally:
        os.unlink(name)


@contextlib.contextmanager
def TemporaryDirectoryName(suffix: str | None = None) -> Iterator[str]:
    """The name of a temporary folder."""
    with tempfile.TemporaryDirectory(suffix=suffix) as name:
        yield name


class BytesIOContext(io.BytesIO):
    """A file in memory, as a context."""

    def __exit__(self, *error: object) -> None:
        pass


# Tensors and functions -----------------------------------------------------------------------------------------------


def noncontiguous_like(t: Any) -> Any:
    """A tensor of the same values whose memory has gaps.  (*) -> (*)"""
    if not t.is_contiguous():
        return t
    wide = torch.empty(*t.shape, 2, dtype=t.dtype, device=t.device)
    found = wide[..., 0]
    found.copy_(t.detach())
    return found.requires_grad_(t.requires_grad)


def iter_indices(tensor: Any) -> Iterable[Any]:
    """The indices of a tensor's elements."""
    return range(tensor.size(0)) if tensor.dim() == 1 else itertools.product(*(range(n) for n in tensor.size()))


def is_iterable(obj: object) -> bool:
    """Whether one can iterate over it."""
    return isinstance(obj, Iterable)


def is_iterable_of_tensors(iterable: object, include_empty: bool = False) -> bool:
    """Whether it is a sequence of tensors, and no tensor."""
    if isinstance(iterable, torch.Tensor) or not isinstance(iterable, Iterable):
        return False
    found = list(iterable)
    return all(isinstance(t, torch.Tensor) for t in found) if found else include_empty


def clone_input_helper(input: object) -> Any:
    """A clone of a tensor, of the tensors of a sequence, or the thing itself."""
    if isinstance(input, torch.Tensor):
        return torch.clone(input)
    return tuple(map(clone_input_helper, input)) if isinstance(input, (tuple, list)) else input


def first_sample(self: object, samples: Iterable[Any]) -> Any:
    """The first of some samples; skips the test where there is none."""
    for sample in samples:
        return sample
    raise unittest.SkipTest("Skipped! Need at least 1 sample input")


def get_tensors_from(args: tuple[Any, ...], kwargs: dict[str, Any]) -> set[Any]:
    """The tensors among arguments."""
    return {x for x in (*args, *kwargs.values()) if isinstance(x, torch.Tensor)}


def dtype_name(dtype: dtype | None) -> str:
    """A dtype without its module.

    >>> import rushlight as torch
    >>> dtype_name(torch.float32)
    'float32'
    """
    return str(dtype).rpartition(".")[2]


def numpy_to_torch_dtype(np_dtype: Any) -> Any:
    """The dtype of a NumPy one."""
    return numpy_to_torch_dtype_dict[np.dtype(np_dtype).type]


def copy_func(f: Any) -> Any:
    """Another function of the same code."""
    made = copy.copy(type(f)(f.__code__, f.__globals__, f.__name__, f.__defaults__, f.__closure__))
    made.__kwdefaults__ = f.__kwdefaults__
    return functools.update_wrapper(made, f)


def gradcheck(fn: Any, inputs: Any, **kwargs: Any) -> bool:
    """`torch.autograd.gradcheck`, fast unless told otherwise."""
    return torch.autograd.gradcheck(
        fn, inputs, **{"check_batched_grad": True, "fast_mode": not TEST_WITH_SLOW_GRADCHECK, **kwargs}
    )


def gradgradcheck(fn: Any, inputs: Any, grad_outputs: Any = None, **kwargs: Any) -> bool:
    """`torch.autograd.gradgradcheck`, fast unless told otherwise."""
    return torch.autograd.gradgradcheck(
        fn, inputs, grad_outputs, **{"check_batched_grad": True, "fast_mode": not TEST_WITH_SLOW_GRADCHECK, **kwargs}
    )


def retry(
    ExceptionToCheck: Any, tries: int = 3, delay: float = 3, skip_after_retries: bool = False
) -> Callable[..., Any]:
    """Run a test again that raises this error, so often, with so many seconds between."""

    def decorate(fn: Any) -> Callable[..., Any]:
        @functools.wraps(fn)
        def run(*args: Any, **kwargs: Any) -> Any:
            for _ in range(tries - 1):
                try:
                    return fn(*args, **kwargs)
                except ExceptionToCheck:
                    time.sleep(delay)
            try:
                return fn(*args, **kwargs)
            except ExceptionToCheck as error:
                if skip_after_retries:
                    raise unittest.SkipTest(f"Skipping after {tries} consecutive {error}") from error
                raise

        return run

    return decorate


def load_tests(loader: object, tests: Any, pattern: object) -> Any:
    """The tests of a module, for unittest's loader."""
    return unittest.TestSuite(tests)
