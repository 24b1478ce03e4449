"""`torch.testing._internal.common_cuda`: there is none."""

from __future__ import annotations

from typing import Any

from rushlight.testing._internal.conditions import unchanged

TEST_CUDA = TEST_MULTIGPU = TEST_CUDNN = TEST_MAGMA = SM53OrLater = SM60OrLater = SM70OrLater = SM75OrLater = (
    SM80OrLater
) = False
SM89OrLater = SM90OrLater = SM100OrLater = TEST_NUMBA_CUDA = TEST_CUSPARSE_GENERIC = TEST_BF16 = False
PLATFORM_SUPPORTS_FLASH_ATTENTION = PLATFORM_SUPPORTS_MEM_EFF_ATTENTION = PLATFORM_SUPPORTS_FUSED_ATTENTION = False
PLATFORM_SUPPORTS_CUDNN_ATTENTION = PLATFORM_SUPPORTS_BF16 = PLATFORM_SUPPORTS_FP8 = False
CUDA_DEVICE, TEST_CUDNN_VERSION = None, 0
with_tf32_off = unchanged


def tf32_on_and_off(*args: object, **kwargs: object) -> Any:
    """Run a test as it is."""
    return unchanged


def tf32_is_not_fp32() -> bool:
    """False."""
    return False


def initialize_cuda_context_rng() -> None:
    """Nothing."""
