"""What becomes of CUDA where there is none: ``rushlight run`` keeps such tensors on the CPU, and says so once."""

import sys

from rushlight.basics import devices

__all__ = ["on_cpu", "stay_on_cpu"]

_said = False


def stay_on_cpu() -> None:
    """From now on memory asked for on "cuda" devices is the CPU's, with one line of warning on the first use.

    The devices keep their names: ``torch.device("cuda:1")`` is another one than the CPU's, as in PyTorch.

    For scripts that say ``.cuda()`` or ``"cuda"`` without asking ``torch.cuda.is_available()``, which stays
    False.  Without this call they fail as in PyTorch's builds for the CPU.
    """
    devices.instead_of_cuda = on_cpu


def on_cpu() -> None:
    """Say, the first time, that tensors of CUDA devices are on the CPU."""
    global _said
    if not _said:
        _said = True
        print("rushlight: no CUDA device: tensors sent to 'cuda' stay on the CPU", file=sys.stderr)
