"""``torch.backends.cuda`` where there is no CUDA: its settings are kept and change nothing."""

from types import SimpleNamespace

__all__ = ["is_built", "matmul"]

matmul = SimpleNamespace(
    allow_tf32=False,
    allow_fp16_reduced_precision_reduction=True,
    allow_bf16_reduced_precision_reduction=True,
    fp32_precision="none",
)


def is_built() -> bool:
    """Whether there is support for CUDA: no."""
    return False
