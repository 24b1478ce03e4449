"""What becomes of CUDA where there is none: ``rushlight run`` keeps such tensors on the CPU, and says so once."""

import sys

from rushlight import devices

__all__ = ["on_cpu", "stay_on_cpu"]

_said = False


def stay_on_cpu() -> None:
    """From now on "cuda" devices mean the CPU, with one line of warning on the first use.

    For scripts that say ``.cuda()`` or ``"cuda"`` without asking ``torch.cuda.is_available()``, which stays
    False.  Without this call they fail as in PyTorch's builds for the CPU.
    """
    devices.instead_of_cuda = on_cpu


def on_cpu() -> str:
    """The kind of device to use instead; warns on the first call."""
    global _said
    if not _said:
        _said = True
        print("rushlight: no CUDA device: tensors sent to 'cuda' stay on the CPU", file=sys.stderr)
    return "cpu"
