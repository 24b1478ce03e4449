"""Random number generators with PyTorch's interface on NumPy's SFC64."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np

from rushlight.devices import device as device_class


class Generator:
    """A source of random numbers with a state of its own.  `numpy` is the np.random.Generator behind it.

    >>> import rushlight as torch
    >>> g = torch.Generator().manual_seed(0)
    >>> torch.equal(torch.rand(2, generator=g), torch.rand(2, generator=g.manual_seed(0)))
    True
    """

    def __init__(self, device: Any = "cpu"):
        self.device = device_class(device)
        self.manual_seed(67280421310721)

    def manual_seed(self, seed: int) -> Generator:
        """Start the sequence that belongs to `seed` (any int; negative ones wrap around) and return the generator."""
        seed = int(seed)
        if not -(1 << 63) <= seed < 1 << 64:
            raise RuntimeError(f"Overflow when unpacking long: seed {seed} is outside of 64 bits")
        self._seed = seed & ((1 << 64) - 1)
        self.numpy = np.random.Generator(np.random.SFC64(self._seed))
        return self

    def seed(self) -> int:
        """Seed from the operating system's entropy, and return that seed."""
        fresh = int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
        self.manual_seed(fresh)
        return fresh

    def initial_seed(self) -> int:
        """The seed that the sequence started from."""
        return self._seed

    def state_bytes(self) -> bytes:
        """The whole state as bytes."""
        return pickle.dumps((self._seed, self.numpy.bit_generator.state))

    def set_state_bytes(self, state: bytes) -> None:
        """Restore what `state_bytes` returned."""
        self._seed, self.numpy.bit_generator.state = pickle.loads(state)

    def __getstate__(self) -> Any:
        return {"device": self.device, "state": self.state_bytes()}

    def __setstate__(self, state: Any) -> None:
        self.__init__(state["device"])  # type: ignore[misc]
        self.set_state_bytes(state["state"])


default_generator = Generator()
