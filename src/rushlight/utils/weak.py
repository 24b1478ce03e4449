"""Weak references and dictionaries by identity, for keys such as tensors whose `==` compares elements."""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any

from rushlight.tensor import Tensor

__all__ = ["TensorWeakRef", "WeakIdKeyDictionary", "WeakIdRef", "WeakTensorKeyDictionary"]


class WeakIdRef(weakref.ref[Any]):
    """A weak reference that hashes and compares by the identity of what it refers to.

    Two dead references are equal only if they are the same reference.
    """

    __slots__ = ("_id",)

    def __init__(self, key: Tensor, callback: Callable[[Any], None] | None = None):
        super().__init__(key, callback)  # type: ignore[call-arg]
        self._id = id(key)

    def __call__(self) -> Any:
        return super().__call__()

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        mine = self()
        return mine is not None and isinstance(other, weakref.ref) and mine is other()

    def __ne__(self, other: object) -> bool:  # the inherited one compares what is referred to
        return not self == other


class _WeakHashRef(weakref.ref[Any]):
    """A weak reference that hashes and compares as what it refers to; the hash stays when that has gone."""

    __slots__ = ("_hash",)

    def __init__(self, key: object, callback: Callable[[Any], None] | None = None):
        super().__init__(key, callback)  # type: ignore[call-arg]
        self._hash = hash(key)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, weakref.ref) and super().__eq__(other))


class TensorWeakRef:
    """A weak reference to a tensor: call it for the tensor, or None once it is gone."""

    __slots__ = ("ref",)

    def __init__(self, tensor: Any):
        self.ref = WeakIdRef(tensor)

    def __call__(self) -> Any:
        return self.ref()


class WeakIdKeyDictionary(MutableMapping[Any, Any]):
    """A dictionary that holds its keys weakly and finds them by identity; an entry goes when its key does.

    Values are held strongly: a value that refers to its own key keeps the key alive.
    Iteration holds the key at hand alive and may be interleaved with the death of other keys.
    """

    def __init__(self, dict: Any = None, ref_type: Any = WeakIdRef):
        self.data: dict[Any, Any] = {}
        self.ref_type = ref_type
        mine = weakref.ref(self)

        def forget(ref: WeakIdRef) -> None:
            owner = mine()
            if owner is not None:
                owner.data.pop(ref, None)

        self._forget = forget
        if dict is not None:
            self.update(dict)

    def __getitem__(self, key: Tensor) -> Any:
        return self.data[self.ref_type(key)]

    def __setitem__(self, key: Tensor, value: Any) -> None:
        self.data[self.ref_type(key, self._forget)] = value

    def __delitem__(self, key: Tensor) -> None:
        del self.data[self.ref_type(key)]

    def __len__(self) -> int:
        return len(self.data)

    def __iter__(self) -> Iterator[Any]:
        for ref in list(self.data):
            key = ref()
            if key is not None:
                yield key

    def __contains__(self, key: Any) -> bool:
        try:
            return self.ref_type(key) in self.data
        except TypeError:  # no weak reference can be made to it
            return False

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {id(self):#x}>"

    def keyrefs(self) -> list[Any]:
        """The weak references to the keys."""
        return list(self.data)

    def copy(self) -> WeakIdKeyDictionary:
        """A dictionary with the same keys, held weakly, and the same values."""
        new = type(self)(ref_type=self.ref_type)
        new.update(self)
        return new

    __copy__ = copy

    def __deepcopy__(self, memo: Any) -> WeakIdKeyDictionary:
        """A dictionary with the same keys, held weakly, and deep copies of the values."""
        new = type(self)(ref_type=self.ref_type)
        for key, value in self.items():
            new[key] = copy.deepcopy(value, memo)
        return new

    def __or__(self, other: Any) -> Any:
        if not isinstance(other, Mapping):
            return NotImplemented
        new = self.copy()
        new.update(other)
        return new

    def __ror__(self, other: Any) -> Any:
        if not isinstance(other, Mapping):
            return NotImplemented
        new = type(self)(other, self.ref_type)
        new.update(self)
        return new

    def __ior__(self, other: Any) -> WeakIdKeyDictionary:
        self.update(other)
        return self

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mapping):
            return NotImplemented
        return {id(k): v for k, v in self.items()} == {id(k): v for k, v in other.items()}

    __hash__ = None  # type: ignore[assignment]


WeakTensorKeyDictionary = WeakIdKeyDictionary
