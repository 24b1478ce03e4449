"""Optimizers that belong to their parameters: they know them weakly, so that neither keeps the other alive."""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Iterable, Iterator, MutableSequence
from typing import TYPE_CHECKING, Any

from rushlight.utils.weak import WeakIdKeyDictionary, WeakIdRef

if TYPE_CHECKING:
    from rushlight.optim.optimizer import Optimizer


class WeakParams(MutableSequence[Any]):
    """A list of tensors that does not keep them alive; those that are gone are left out."""

    def __init__(self, tensors: Iterable[Any] = ()):
        self._refs = [WeakIdRef(t) for t in tensors]

    def _living(self) -> list[Any]:
        found = [t for t in (ref() for ref in self._refs) if t is not None]
        if len(found) != len(self._refs):
            self._refs = [WeakIdRef(t) for t in found]
        return found

    def __iter__(self) -> Iterator[Any]:
        return iter(self._living())

    def __len__(self) -> int:
        return len(self._living())

    def __getitem__(self, index: Any) -> Any:
        return self._living()[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        found = self._living()
        found[index] = value
        self._refs = [WeakIdRef(t) for t in found]

    def __delitem__(self, index: Any) -> None:
        self._living()
        del self._refs[index]

    def insert(self, index: int, value: Any) -> None:
        """Put a tensor before position `index`."""
        self._living()
        self._refs.insert(index, WeakIdRef(value))

    def __contains__(self, value: object) -> bool:
        return any(t is value for t in self._living())

    def __repr__(self) -> str:
        return repr(self._living())

    def __reduce__(self) -> tuple[Any, ...]:
        """Copied and pickled as a plain list."""
        return list, (self._living(),)


class WeakState(WeakIdKeyDictionary):
    """An optimizer's state whose entries go with their parameters; a missing entry is made, empty."""

    def __getitem__(self, key: Any) -> Any:
        ref = self.ref_type(key)
        found = self.data.get(ref)
        if found is None:
            found = self.data[self.ref_type(key, self._forget)] = {}
        return found

    def get(self, key: Any, default: Any = None) -> Any:
        """The entry of `key`, or `default`, making none."""
        return self.data.get(self.ref_type(key), default)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copied and pickled as the ordinary state of an optimizer."""
        return defaultdict, (dict, dict(self.items()))

    def __deepcopy__(self, memo: Any) -> Any:
        return defaultdict(dict, {copy.deepcopy(k, memo): copy.deepcopy(v, memo) for k, v in self.items()})


def hold_weakly(optimizer: Optimizer) -> None:
    """Make `optimizer` refer to its parameters weakly, in its groups and in its state."""
    for group in optimizer.param_groups:
        group["params"] = WeakParams(group["params"])
    optimizer.state = WeakState(optimizer.state)
