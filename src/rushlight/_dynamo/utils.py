"""What libraries ask of `torch._dynamo.utils`."""

from collections import Counter, defaultdict

from rushlight.basics import caller

__all__ = ["counters", "is_compile_supported", "warn_once"]

counters: defaultdict[str, Counter[str]] = defaultdict(Counter)  # of what was compiled: nothing


def is_compile_supported(device_type: str) -> bool:
    """Whether `torch.compile` takes programs for a device: for the CPU, and runs them as they are."""
    return device_type == "cpu"


def warn_once(msg: str, stacklevel: int = 1) -> None:
    """Warn of `msg` the first time that it is said, at the user's line whatever `stacklevel` says."""
    caller.warn_once(msg)
