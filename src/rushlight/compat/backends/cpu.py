"""``torch.backends.cpu``: the processor."""

from rushlight._C._build import _get_cpu_capability

__all__ = ["get_cpu_capability"]


def get_cpu_capability() -> str:
    """The instruction set that the processor offers: "AVX512", "AVX2" or "DEFAULT"."""
    return _get_cpu_capability()
