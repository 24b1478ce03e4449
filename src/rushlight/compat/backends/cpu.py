"""``torch.backends.cpu``: the processor."""

from rushlight import cpu

__all__ = ["get_cpu_capability"]


def get_cpu_capability() -> str:
    """The instruction set that the processor offers: "AVX512", "AVX2" or "DEFAULT"."""
    return {4: "AVX512", 3: "AVX2"}.get(cpu.level(), "DEFAULT")
