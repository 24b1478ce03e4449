"""`torch.testing._internal.common_device_type`: tests that are run on each device, here the CPU, and for each of several dtypes."""

from __future__ import annotations

import enum
import functools
import unittest
from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from rushlight.basics.signatures import signature_of
from rushlight.testing._internal.common_utils import TestCase
from rushlight.testing._internal.conditions import unchanged
from rushlight.testing._internal.parametrizing import Variant, _TestParametrizer, both, bound

if TYPE_CHECKING:
    from rushlight.basics.devices import device
    from rushlight.basics.dtypes import dtype


Decorator = Callable[[Any], Any]
tol = namedtuple("tol", ["atol", "rtol"])
ANY_DTYPE_ORDER = (
    "float32",
    "float64",
    "complex64",
    "complex128",
    "bfloat16",
    "float16",
    "int64",
    "int32",
    "int16",
    "int8",
    "uint8",
    "bool",
)
GPU_TYPES = ("cuda", "xpu", "mps")


class DeviceTypeTestBase(TestCase):
    """A test case of a device."""

    device_type = "generic_device_type"

    @classmethod
    def get_primary_device(cls) -> str:
        """The device that tests run on."""
        return cls.device_type

    @classmethod
    def get_all_devices(cls) -> list[str]:
        """The devices of this type."""
        return [cls.get_primary_device()]


class CPUTestBase(DeviceTypeTestBase):
    """A test case of the CPU."""

    device_type = "cpu"


device_type_test_bases = [CPUTestBase]


def get_all_device_types() -> list[str]:
    """The CPU."""
    return ["cpu"]


def instantiate_device_type_tests(
    generic_test_class: Any,
    scope: dict[str, Any],
    except_for: object = None,
    only_for: object = None,
    include_lazy: bool = False,
    allow_mps: bool = False,
    allow_xpu: bool = False,
) -> None:
    """Put a class of tests for each device into `scope`, in the place of one whose tests take `device`.

    Tests take `dtype`, `op` and what they are parametrized by as well.  except_for, only_for: types of devices.
    """
    scope.pop(generic_test_class.__name__, None)
    for base in device_type_test_bases:
        kind = base.device_type
        if (except_for and kind in _listed(except_for)) or (only_for and kind not in _listed(only_for)):
            continue
        generic = {
            name: value for name, value in vars(generic_test_class).items() if name not in ("__dict__", "__weakref__")
        }
        tests = {
            name: generic.pop(name) for name in list(generic) if name.startswith("test") and callable(generic[name])
        }
        name = f"{generic_test_class.__name__}{kind.upper()}"
        bases = (base, *(b for b in generic_test_class.__bases__ if b is not TestCase and b is not unittest.TestCase))
        made: Any = type(name, bases, {**generic, "__module__": generic_test_class.__module__, "__qualname__": name})
        for test_name, test in tests.items():
            for whole, run in _of_device(test_name, test, made):
                if hasattr(made, whole):
                    raise RuntimeError(f"Redefinition of test {whole}")
                setattr(made, whole, run)
        scope[name] = made


def _listed(given: Any) -> Sequence[str]:
    return (given,) if isinstance(given, str) else given


def _of_device(name: str, test: Any, cls: type[Any]) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The tests of a class for a device that a generic one is, by their names."""
    variants = _with_dtypes(test, cls)
    for fn, end, given, decorators in variants:
        kinds = given.get("dtypes", (given["dtype"],) if "dtype" in given else ())
        dtype = "_".join(str(kind).rpartition(".")[2] for kind in kinds)
        whole = "_".join(part for part in (name, end, cls.device_type, dtype) if part)
        if "device" in signature_of(test).parameters:
            given = {"device": cls.get_primary_device(), **given}
        if hasattr(test, "num_required_devices"):
            given["devices"] = cls.get_all_devices()
        precise = _with_precision(test, given.get("dtype"))
        yield whole, bound(fn, whole, given, [*decorators(given), precise, *_refusals(test, cls.device_type)])


def _with_dtypes(test: Any, cls: Any) -> Iterator[Variant]:
    """The variants of a test, those of its dtypes among them."""
    kinds = getattr(test, "dtypes", {})
    chosen = kinds.get(cls.device_type, kinds.get("all"))

    def of_dtypes(fn: Any, generic: Any, device: object) -> Iterator[Variant]:
        for kind in chosen if chosen is not None else (None,):
            several = isinstance(kind, (tuple, list))
            yield fn, "", {} if kind is None else {"dtypes" if several else "dtype": kind}, lambda _: []

    variants = getattr(test, "parametrize_fn", None)
    if variants is None:
        return of_dtypes(test, cls, cls)
    return variants(test, cls, cls) if chosen is None else both(variants, of_dtypes, test, cls, cls)


def _with_precision(test: object, dtype: dtype | None) -> Decorator:
    """Run a test with the tolerances that it has for a dtype."""
    atol, both_of = (
        getattr(test, "precision_overrides", {}).get(dtype),
        getattr(test, "tolerance_overrides", {}).get(dtype),
    )
    if atol is None and both_of is None:
        return unchanged
    wanted = both_of or tol(atol, 0.0)

    def decorate(fn: Any) -> Callable[..., Any]:
        @functools.wraps(fn)
        def run(self: Any, *args: Any, **kwargs: Any) -> Any:
            former = self.precision, self.rel_tol
            self.precision, self.rel_tol = max(wanted.atol, former[0]), max(wanted.rtol, former[1])
            try:
                return fn(self, *args, **kwargs)
            finally:
                self.precision, self.rel_tol = former

        return run

    return decorate


def _refusals(test: object, kind: str) -> list[Decorator]:
    """The decorators that a test has for a device."""
    return [decorate for device, decorate in getattr(test, "device_decorators", ()) if device in (None, kind)]


def _for_device(device: str | None, decorate: Decorator) -> Decorator:
    """Decorate the tests of a device, or of all."""

    def entered(fn: Any) -> Any:
        fn.device_decorators = (*getattr(fn, "device_decorators", ()), (device, decorate))
        return fn

    return entered


# Which dtypes, devices and tolerances ---------------------------------------------------------------------------------


class dtypes:
    """Run a test for each of these dtypes, which it takes as `dtype` (tuples of them as `dtypes`)."""

    def __init__(self, *args: Any, device_type: str = "all") -> None:
        self.args = (
            tuple(args[0])
            if len(args) == 1
            and isinstance(args[0], (list, tuple))
            and args[0]
            and isinstance(args[0][0], (list, tuple))
            else args
        )
        self.device_type = device_type

    def __call__(self, fn: Any) -> Any:
        kinds = dict(getattr(fn, "dtypes", {}))
        if self.device_type in kinds:
            raise RuntimeError(f"dtypes redefinition for {self.device_type}")
        fn.dtypes = {**kinds, self.device_type: self.args}
        return fn


def dtypesIfCPU(*args: object) -> dtypes:
    """Other dtypes on the CPU."""
    return dtypes(*args, device_type="cpu")


def _elsewhere(*args: object) -> Decorator:
    """Other dtypes on a device that is not here."""
    return unchanged


dtypesIfCUDA = dtypesIfMPS = dtypesIfXPU = dtypesIfHPU = dtypesIfPRIVATEUSE1 = _elsewhere


def precisionOverride(d: dict[Any, float]) -> Decorator:
    """An absolute tolerance for tests of these dtypes."""

    def decorate(fn: Any) -> Any:
        fn.precision_overrides = d
        return fn

    return decorate


def toleranceOverride(d: dict[Any, Any]) -> Decorator:
    """Tolerances, as `tol(atol=, rtol=)`, for tests of these dtypes."""

    def decorate(fn: Any) -> Any:
        fn.tolerance_overrides = d
        return fn

    return decorate


def onlyOn(device_type: str | list[str]) -> Decorator:
    """Run on this type of device alone."""
    there = "cpu" in _listed(device_type)
    return unchanged if there else unittest.skip(f"Only runs on {device_type}")


def onlyNativeDeviceTypesAnd(devices: object = None) -> Decorator:
    """Run on PyTorch's own types of devices, which the CPU is, and on these."""
    return unchanged


onlyCPU = onlyNativeDeviceTypes = unchanged
onlyCUDA, onlyMPS, onlyXPU, onlyHPU, onlyPRIVATEUSE1, onlyAccelerator, onlyCUDAAndPRIVATEUSE1 = (
    unittest.skip(f"Only runs on {name}")
    for name in ("cuda", "mps", "xpu", "hpu", "privateuse1", "accelerators", "cuda")
)


def deviceCountAtLeast(num_required_devices: int) -> Decorator:
    """Run where there are so many devices, which are given as `devices`."""

    def decorate(fn: Any) -> Any:
        fn.num_required_devices = num_required_devices
        return fn if num_required_devices <= 1 else unittest.skip(f"requires {num_required_devices} devices")(fn)

    return decorate


def largeTensorTest(size: object, device: device | str | int | None = None, inductor: bool = False) -> Decorator:
    """Skip a test that needs much memory."""
    return unittest.skip(f"Insufficient cpu memory: the test asks for {size}")


class skipIf:
    """Skip on a type of device, or on all, if `dep` is true or the name of an attribute of the test case that is."""

    def __init__(self, dep: Any, reason: str, device_type: str | None = None) -> None:
        self.dep, self.reason, self.device_type = dep, reason, device_type

    def __call__(self, fn: Any) -> Any:
        @functools.wraps(fn)
        def run(slf: Any, *args: Any, **kwargs: Any) -> Any:
            if self.device_type in (None, getattr(slf, "device_type", None)):
                if getattr(slf, self.dep, False) if isinstance(self.dep, str) else self.dep:
                    raise unittest.SkipTest(self.reason)
            return fn(slf, *args, **kwargs)

        return run


def skipCPUIf(dep: object, reason: str) -> skipIf:
    """Skip on the CPU if `dep` holds."""
    return skipIf(dep, reason, "cpu")


def _skips_elsewhere(*args: object, **kwargs: object) -> Decorator:
    """Skip on a device that is not here."""
    return unchanged


skipCUDAIf = skipXPUIf = skipGPUIf = skipLazyIf = skipMetaIf = skipMPSIf = skipHPUIf = skipXLAIf = skipPRIVATEUSE1If = (
    _skips_elsewhere
)
skipCUDAIfRocmVersionLessThan = skipCUDAVersionIn = skipCUDAIfVersionLessThan = skipCUDAIfCudnnVersionLessThan = (
    _skips_elsewhere
)
skipCPUIfNoLapack = skipCPUIfNoFFT = skipCPUIfNoMkl = skipMeta = skipXLA = skipMPS = skipHPU = skipXPU = skipLazy = (
    unchanged
)
skipCUDAIfNoMagma = skipCUDAIfNoCusolver = skipCUDAIfNoMagmaAndNoCusolver = skipCUDAIfRocm = skipCUDAIfNotRocm = (
    unchanged
)
skipCUDAIfNoMagmaAndNoLinalgsolver = skipCUDAIfNoCusolverROCMIfNoMagma = skipCUDAIfNoCudnn = skipCUDAIfMiopen = (
    unchanged
)
skipCUDAIfNoCusparseGeneric = skipCUDAIfNoHipsparseGeneric = skipCUDAIfNoSparseGeneric = skipCUDAIfNoMiopen = unchanged
skipCUDAIfNotMiopenSuggestNHWC = skipPRIVATEUSE1 = disablecuDNN = disableMkldnn = unchanged
expectedFailureCUDA = expectedFailureXPU = expectedFailureMeta = expectedFailureXLA = expectedFailureHPU = unchanged
expectedFailureMPS = expectedFailureMPSComplex = expectedFailureMPSPre14 = expectedFailureMPSPre15 = unchanged
skipCPUIfNoMklSparse = skipCPUIfNoMkldnn = unittest.skip("MKL is not here")


def _fails(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A test that passes if `fn` fails."""

    @functools.wraps(fn)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            fn(self, *args, **kwargs)
        except Exception:
            return
        self.fail("expected test to fail, but it passed")

    return run


def expectedFailure(device_type: str, dtype: dtype | None = None) -> Decorator:
    """Expect a failure on a type of device."""
    return _for_device(device_type, _fails)


expectedFailureCPU = expectedFailure("cpu")


# Tests of each of several operators -----------------------------------------------------------------------------------


class OpDTypes(enum.Enum):
    """Which dtypes a test of operators is run for."""

    supported = 0
    unsupported = 1
    supported_backward = 2
    unsupported_backward = 3
    any_one = 4
    none = 5
    any_common_cpu_cuda_one = 6


class ops(_TestParametrizer):
    """Run a test for each of several operators, given as `op`, and for their dtypes.

    op_list: objects with `name`, `variant_test_name`, and `supported_dtypes(device_type)` or `dtypes`; dtypes: which of theirs, or
    dtypes; allowed_dtypes: no others.
    """

    def __init__(self, op_list: Iterable[Any], *, dtypes: Any = OpDTypes.supported, allowed_dtypes: Any = None,
                 skip_if_dynamo: bool = True) -> None:  # fmt: skip
        self.op_list, self.opinfo_dtypes = list(op_list), dtypes
        self.allowed_dtypes = None if allowed_dtypes is None else set(allowed_dtypes)

    def _variants(self, test: Callable[..., Any], generic_cls: object, device_cls: Any) -> Iterator[Variant]:
        for op in self.op_list:
            name = "_".join(part for part in (op.name.replace(".", "_"), getattr(op, "variant_test_name", "")) if part)
            for dtype in self._kinds(op, device_cls.device_type):
                chosen = functools.partial(_decorators_of, op, generic_cls, test, device_cls)
                yield test, name, {"op": op} if dtype is None else {"op": op, "dtype": dtype}, chosen

    def _kinds(self, op: Any, kind: str) -> Iterable[Any]:
        """The dtypes that an operator is tested with."""
        wanted = self.opinfo_dtypes
        if wanted is OpDTypes.none:
            return (None,)
        if not isinstance(wanted, OpDTypes):
            found = list(wanted)
        elif wanted is OpDTypes.supported_backward:
            found = list(op.supported_backward_dtypes(kind))
        else:
            found = list(op.supported_dtypes(kind) if hasattr(op, "supported_dtypes") else op.dtypes)
        if self.allowed_dtypes is not None:
            found = [dtype for dtype in found if dtype in self.allowed_dtypes]
        if wanted in (OpDTypes.any_one, OpDTypes.any_common_cpu_cuda_one):
            order = {name: i for i, name in enumerate(ANY_DTYPE_ORDER)}
            found = sorted(found, key=lambda d: order.get(str(d).rpartition(".")[2], 99))[:1]
        return found


def _decorators_of(op: object, generic_cls: object, test: Any, device_cls: Any, given: dict[str, Any]) -> list[Any]:
    """The decorators that an operator has for a test."""
    choose = getattr(op, "get_decorators", None)
    if choose is None:
        return []
    return list(choose(device_cls.__name__, test.__name__, device_cls.device_type, given.get("dtype"), given))
