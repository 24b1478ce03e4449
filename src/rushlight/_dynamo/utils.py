"""What libraries ask of `torch._dynamo.utils`."""

from collections import Counter, defaultdict

__all__ = ["counters", "is_compile_supported"]

counters: defaultdict[str, Counter[str]] = defaultdict(Counter)  # of what was compiled: nothing


def is_compile_supported(device_type: str) -> bool:
    """Whether `torch.compile` takes programs for a device: for the CPU, and runs them as they are."""
    return device_type == "cpu"
