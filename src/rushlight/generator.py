"""Random number generators with PyTorch's interface and numbers."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from rushlight.basics import devices
from rushlight.basics.devices import device as device_class
from rushlight.tensor import wrap

if TYPE_CHECKING:
    from rushlight.basics.arrays import Array
    from rushlight.kernels.twister import Twister


class Generator:
    """A source of random numbers with a state of its own: those that PyTorch's gives from the same seed.

    `numpy` is the np.random.Generator behind it.


    >>> import rushlight as torch
    >>> g = torch.Generator().manual_seed(0)
    >>> torch.equal(torch.rand(2, generator=g), torch.rand(2, generator=g.manual_seed(0)))
    True
    """

    def __init__(self, device: Any = "cpu"):
        self.device = device_class("cpu" if device is None else device)
        if self.device.type == "meta":
            raise RuntimeError("torch.Generator: device 'meta' draws no numbers: use device='cpu'")
        if self.device.type == "cuda" and devices.instead_of_cuda is None:
            raise RuntimeError("Device type CUDA is not supported for torch.Generator() api: there is no CUDA device")
        self.manual_seed(67280421310721)

    def manual_seed(self, seed: int) -> Generator:
        """Start the sequence that belongs to `seed` (any int; negative ones wrap around) and return the generator."""
        if not hasattr(seed, "__index__"):
            raise RuntimeError(f"manual_seed expected a long, but got {type(seed).__name__}")
        seed = int(seed)
        if not -(1 << 63) <= seed < 1 << 64:
            raise ValueError(f"Overflow when unpacking long long: seed {seed} is outside of 64 bits")
        self._seed = seed & ((1 << 64) - 1)
        if "numpy" in self.__dict__:
            self.numpy.reseed(self._seed)
        return self

    @cached_property
    def numpy(self) -> Twister:
        """Made when it is first asked for: importing `numpy.random` takes an eighth of what importing this package takes."""
        from rushlight.kernels.twister import Twister

        return Twister(self._seed)

    def seed(self) -> int:
        """Seed from the operating system's entropy, and return that seed."""
        fresh = int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
        self.manual_seed(fresh)
        return fresh

    def get_offset(self) -> int:
        """Refused: raises RuntimeError.  Generators of GPUs alone count what they gave."""
        raise RuntimeError("CPU Generator does not use offset")

    def set_offset(self, offset: int) -> None:
        """Refused: raises RuntimeError, as `get_offset`."""
        raise RuntimeError("CPU Generator does not use offset")

    def graphsafe_get_state(self) -> Generator:
        """Refused: raises NotImplementedError.  There are no graphs of a GPU to be safe in."""
        raise NotImplementedError("graphsafe_get_state is not supported in this Generator")

    def graphsafe_set_state(self, state: Generator) -> None:
        """Refused: raises NotImplementedError, as `graphsafe_get_state`."""
        raise NotImplementedError("graphsafe_set_state is not supported in this Generator")

    def initial_seed(self) -> int:
        """The seed that the sequence started from."""
        return self._seed

    def state_words(self) -> Array:
        """The whole state, as PyTorch's generator writes it, in 64-bit words."""
        return self.numpy.state()

    def set_state_words(self, words: Array) -> None:
        """Restore what `state_words` returned."""
        self.numpy.set_state(words)
        self._seed = self.numpy.seed

    def get_state(self) -> Any:
        """The whole state as a tensor of bytes."""
        return wrap(self.state_words().view(np.uint8))

    def set_state(self, new_state: object) -> Generator:
        """Restore a state that `get_state` or PyTorch's generator returned, and return the generator.  Raises TypeError or RuntimeError for anything else."""
        array = getattr(new_state, "_array", None)
        if array is None or array.dtype != np.uint8:
            raise TypeError("RNG state must be a torch.ByteTensor")
        if array.shape != (STATE_BYTES,):
            raise RuntimeError(
                f"RNG state is the wrong size: expected {STATE_BYTES} bytes, got shape {list(array.shape)}"
            )
        self.set_state_words(np.ascontiguousarray(array).view(np.uint64))
        return self

    def clone_state(self) -> Generator:
        """A generator of its own in the same state."""
        fresh = Generator(self.device)
        fresh.set_state_words(self.state_words())
        return fresh

    def __copy__(self) -> Generator:
        return self.clone_state()

    def __deepcopy__(self, memo: object) -> Generator:
        return self.clone_state()

    def __getstate__(self) -> Any:
        return {"device": self.device, "state": self.state_words()}

    def __setstate__(self, state: Any) -> None:
        self.__init__(state["device"])  # type: ignore[misc]
        self.set_state_words(state["state"])

    def __repr__(self) -> str:
        return f"<torch.Generator on {self.device}, seed {self._seed}>"


STATE_BYTES = 5056  # of PyTorch's, too
default_generator = Generator()
