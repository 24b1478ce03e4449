"""``torch.backends.mkl``: Intel's MKL, which rushlight does not use."""

from rushlight.compat.backends._verbose import Verbose

__all__ = ["is_available", "verbose"]

VERBOSE_OFF = 0
VERBOSE_ON = 1


def is_available() -> bool:
    """Whether Intel's MKL is used: no, matrix products are those of NumPy's BLAS."""
    return False


class verbose(Verbose):
    """Context manager that would have MKL print its calls: AssertionError, unless it is `VERBOSE_OFF`."""

    library = "MKL"

    def __init__(self, enable: int):
        self.asked = self.enable = enable
