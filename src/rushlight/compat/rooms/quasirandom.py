"""``torch.quasirandom``: Sobol sequences, by SciPy, which has to be installed."""

from __future__ import annotations

from rushlight.basics import dtypes
from rushlight.basics.dtypes import dtype
from rushlight.generator import default_generator
from rushlight.ops.create.create import from_numpy
from rushlight.tensor import Tensor

__all__ = ["SobolEngine"]


class SobolEngine:
    """Points of the unit cube that fill it evenly.

    dimension: how many numbers a point has, at most 21201; scramble: whether the sequence is scrambled, by `seed` or the
    default generator.  Without scrambling the points are PyTorch's; scrambled ones are others than PyTorch's of a seed.
    Raises ImportError without SciPy, ValueError for other dimensions.
    """

    MAXBIT = 30
    MAXDIM = 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if not 1 <= dimension <= self.MAXDIM:
            raise ValueError(f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]")
        self.dimension, self.scramble = dimension, scramble
        self.seed = int(default_generator.numpy.integers(1 << 31)) if scramble and seed is None else seed
        self.reset()

    def reset(self) -> SobolEngine:
        """Begin again with the first point."""
        try:
            from scipy.stats import qmc
        except ImportError as error:
            raise ImportError("SobolEngine: SciPy is not installed; pip install scipy") from error
        self._engine = qmc.Sobol(self.dimension, scramble=self.scramble, seed=self.seed)
        self.num_generated = 0
        return self

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: dtype | None = None) -> Tensor:
        """The next points.  -> (n, dimension), of the default dtype unless one is given"""
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of numbers of points that are no powers of two
            points = self._engine.random(n)
        self.num_generated += n
        found = from_numpy(points).to(dtype or dtypes.get_default_dtype())
        return found if out is None else out.resize_(found.shape).copy_(found)

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: dtype | None = None) -> Tensor:
        """The next 2**m points.  Raises ValueError where there would not be a power of two in all."""
        total = self.num_generated + 2**m
        if total & (total - 1):
            raise ValueError(f"The balance properties of Sobol' points require n to be a power of 2: {self.num_generated} points "
                             f"and 2**{m} more are {total}; call reset() before")  # fmt: skip
        return self.draw(2**m, out, dtype)

    def fast_forward(self, n: int) -> SobolEngine:
        """Leave out points."""
        self._engine.fast_forward(n)
        self.num_generated += n
        return self

    def __repr__(self) -> str:
        shown = [f"dimension={self.dimension}"] + ["scramble=True"] * self.scramble
        return f"SobolEngine({', '.join(shown + [f'seed={self.seed}'] * (self.seed is not None))})"
