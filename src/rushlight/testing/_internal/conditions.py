"""What a machine and a build have, as PyTorch's tests ask for it, and decorators that skip by it."""

from __future__ import annotations

import functools
import importlib.util
import os
import platform
import sys
import unittest
import warnings
from collections.abc import Callable
from typing import Any

Decorator = Callable[[Any], Any]


def _there(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


IS_LINUX, IS_WINDOWS, IS_MACOS = (sys.platform == name for name in ("linux", "win32", "darwin"))
IS_X86, IS_ARM64 = platform.machine() in ("x86_64", "i386"), platform.machine() in ("arm64", "aarch64")
IS_PPC = IS_S390X = IS_JETSON = IS_SANDCASTLE = IS_FBCODE = IS_REMOTE_GPU = IS_CI = IN_RE_WORKER = False
IS_FILESYSTEM_UTF8_ENCODING = sys.getfilesystemencoding() == "utf-8"
TEST_NUMPY, NOTEST_CPU, NO_MULTIPROCESSING_SPAWN = True, False, False
TEST_SCIPY, TEST_NUMBA, TEST_DILL, TEST_TRANSFORMERS, TEST_LIBROSA, TEST_FAIRSEQ, TEST_OPT_EINSUM, TEST_Z3 = (
    _there(name) for name in ("scipy", "numba", "dill", "transformers", "librosa", "fairseq", "opt_einsum", "z3")
)
TEST_CUDA = TEST_MULTIGPU = TEST_MPS = TEST_XPU = TEST_HPU = TEST_MKL = TEST_ONEDNN = TEST_MKLDNN = TEST_ACL = (
    TEST_CUDNN
) = False
TEST_ACCELERATOR = TEST_MULTIACCELERATOR = TEST_PRIVATEUSE1 = TEST_CUDA_GRAPH = TEST_CUDA_MEM_LEAK_CHECK = False
TEST_WITH_ASAN = TEST_WITH_TSAN = TEST_WITH_UBSAN = TEST_WITH_DEV_DBG_ASAN = TEST_WITH_ROCM = TEST_WITH_MTIA = False
TEST_WITH_TORCHINDUCTOR = TEST_WITH_AOT_EAGER = TEST_WITH_TORCHDYNAMO = TEST_WITH_CROSSREF = TEST_WITH_TV = False
TEST_WITH_SLOW_GRADCHECK = TEST_WITH_MIOPEN_SUGGEST_NHWC = TEST_SKIP_CUDAGRAPH = False
TEST_WITH_SLOW, TEST_SKIP_FAST = (os.environ.get(f"PYTORCH_TEST_{n}") == "1" for n in ("WITH_SLOW", "SKIP_FAST"))
TEST_WITHOUT_COMPILED_AUTOGRAD = True
SEED, GRADCHECK_NONDET_TOL, NATIVE_DEVICES = 1234, 0.0, ("cpu", "cuda", "xpu", "meta")


def unchanged(fn: Callable[..., Any]) -> Any:
    """Decorate with nothing: what would be skipped is not there."""
    return fn


def _plain(*args: object, **kwargs: object) -> object:
    """A decorator that changes nothing, with arguments or without."""
    return args[0] if len(args) == 1 and not kwargs and callable(args[0]) else unchanged


# Of compilers, accelerators and build options that are not here: what they skip runs.
skipIfTorchDynamo = skipIfTorchInductor = xfailIfTorchDynamo = unMarkDynamoStrictTest = markDynamoStrictTest = _plain
skipIfRocm = skipIfMPS = skipIfMps = skipIfXpu = skipIfHpu = skipIfCrossRef = skipIfNNModuleInlined = skipIfRocmArch = (
    _plain
)
skipRocmIfTorchInductor = skipIfLegacyJitExecutor = skipCUDAMemoryLeakCheckIf = skipCUDANonDefaultStreamIf = _plain
skipIfCompiledWithoutNumpy = skipIfNoLapack = serialTest = skipIfOnGHA = xfailIfS390X = xfailIfACL = _plain
runWithoutCompiledAutograd = setLinalgBackendsToDefaultFinally = setBlasBackendsToDefaultFinally = unchanged
skipIfNoSciPy = unittest.skipIf(not TEST_SCIPY, "test requires SciPy, but SciPy not found")
skipIfNoXPU = runOnRocm = requires_cuda_p2p_access = unittest.skip("there is no such device")
skipIfNoXNNPACK = unittest.skip("XNNPACK is not here")
xfailIfLinux = unittest.expectedFailure if IS_LINUX else unchanged
xfailIfWindows = unittest.expectedFailure if IS_WINDOWS else unchanged


def skipIfWindows(
    func: Callable[..., Any] | None = None, *, msg: str = "test doesn't currently work on the Windows stack"
) -> Any:
    """Skip on Windows."""
    decorate = unittest.skipIf(IS_WINDOWS, msg)
    return decorate if func is None else decorate(func)


def xfailIf(condition: bool) -> Decorator:
    """Expect a failure if the condition holds."""
    return unittest.expectedFailure if condition else unchanged


def slowTest(fn: Callable[..., Any]) -> Any:
    """Run only where PYTORCH_TEST_WITH_SLOW is 1."""
    fn.__dict__["slow_test"] = True
    return unittest.skipIf(not TEST_WITH_SLOW, "test is slow; run with PYTORCH_TEST_WITH_SLOW to enable test")(fn)


def slowTestIf(condition: bool) -> Decorator:
    """`slowTest` if the condition holds."""
    return slowTest if condition else unchanged


def suppress_warnings(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Run without warnings."""

    @functools.wraps(fn)
    def run(*args: Any, **kwargs: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return fn(*args, **kwargs)

    return run
