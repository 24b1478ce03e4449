"""Datapipes that several are made of: the same elements for each, or each element for one of them.

Each of them reads a datapipe of its own kind, which reads the source once and keeps what others have not read yet.
"""

from __future__ import annotations

import collections
import copy
from collections.abc import Callable, Iterator
from typing import Any, Literal

from rushlight.basics.caller import warn
from rushlight.utils.data.datapipes._decorator import functional_datapipe
from rushlight.utils.data.datapipes.datapipe import IterDataPipe, sized
from rushlight.utils.data.datapipes.utils.common import _check_unpickable_fn

COPIES: dict[str | None, Callable[[Any], Any]] = {None: lambda x: x, "shallow": copy.copy, "deep": copy.deepcopy}
END = object()  # that there is no other element


class _Branching(IterDataPipe[Any]):
    """The one datapipe behind several."""

    def __init__(self, name: str, datapipe: IterDataPipe[Any], num_instances: int, buffer_size: int):
        self.main_datapipe, self.num_instances, self.buffer_size = datapipe, num_instances, buffer_size
        if buffer_size < 0:
            warn(
                f"Unlimited buffer size is set for `{name}`: what one of its datapipes has not read yet stays in memory"
            )
        self.reset()

    def reset(self) -> None:
        """Forget what waited, and begin the source anew when the next element is asked for."""
        self._source: Iterator[Any] | None = None
        self._ended = False
        self.waiting = [collections.deque[Any]() for _ in range(self.num_instances)]
        self.done = [False] * self.num_instances
        self.begun = [False] * self.num_instances

    def is_every_instance_exhausted(self) -> bool:
        """Whether each of them has come to the end, or none has begun."""
        return all(self.done) or not any(self.begun)

    def read(self) -> Any:
        """The next element of the source, or END."""
        if self._ended:
            return END
        if self._source is None:
            self._source = iter(self.main_datapipe)
        found = next(self._source, END)
        self._ended = found is END
        return found

    def next_for(self, number: int) -> Any:
        """The next element of one datapipe, or END."""
        waiting = self.waiting[number]
        while not waiting:
            found = self.read()
            if found is END:
                return END
            self.hand_out(found, number)
        return waiting.popleft()

    def get_next_element_by_instance(self, instance_id: int) -> Iterator[Any]:
        """The elements of one datapipe."""
        self.begun[instance_id] = True
        while True:
            found = self.next_for(instance_id)
            if found is END:
                break
            yield found
        self.done[instance_id] = True

    def hand_out(self, found: object, number: int) -> None:
        """Keep an element of the source for those that it is for; it was read for datapipe `number`."""
        raise NotImplementedError

    def __getstate__(self) -> Any:
        kept = {**self.__dict__, "_source": None}
        hook = IterDataPipe.getstate_hook
        return kept if hook is None else hook(kept)

    def __setstate__(self, state: Any) -> None:
        self.__dict__.update(state)
        self.reset()


class _ForkerIterDataPipe(_Branching):
    """Hands each element to all."""

    def __init__(
        self, datapipe: IterDataPipe[Any], num_instances: int, buffer_size: int = 1000, copy_as: str | None = None
    ):
        if copy_as not in COPIES:
            raise ValueError(f"Unknown copy method `{copy_as}` requested, choose one of None, `shallow` or `deep`.")
        self.copy_as = copy_as
        super().__init__("fork", datapipe, num_instances, buffer_size)

    def hand_out(self, found: object, number: int) -> None:
        for k, waiting in enumerate(self.waiting):
            waiting.append(COPIES[self.copy_as](found))
            if k != number and self.buffer_size >= 0 and len(waiting) > self.buffer_size:
                raise BufferError(
                    f"ForkerIterDataPipe buffer overflow, buffer size {self.buffer_size} is insufficient."
                )

    def __len__(self) -> int:
        return sized(self, [self.main_datapipe])[0]


class _DemultiplexerIterDataPipe(_Branching):
    """Hands each element to one."""

    def __init__(
        self,
        datapipe: IterDataPipe[Any],
        num_instances: int,
        classifier_fn: Callable[[Any], int | None],
        drop_none: bool,
        buffer_size: int,
    ):
        self.classifier_fn, self.drop_none = classifier_fn, drop_none
        super().__init__("demux", datapipe, num_instances, buffer_size)

    def hand_out(self, found: object, number: int) -> None:
        to = self.classifier_fn(found)
        if to is None and self.drop_none:
            return
        if to is None or not 0 <= to < self.num_instances:
            raise ValueError(
                f"Output of the classification fn should be between 0 and {self.num_instances - 1}. {to} is returned."
            )
        self.waiting[to].append(found)
        kept = sum(map(len, self.waiting)) - (to == number)
        if self.buffer_size >= 0 and kept > self.buffer_size:
            raise BufferError(
                f"DemultiplexerIterDataPipe buffer overflow, buffer size {self.buffer_size} is insufficient."
            )


class _ChildDataPipe(IterDataPipe[Any]):
    """One of the datapipes that a branching one serves.

    When it is iterated over for the second time, all of them begin anew.
    """

    _is_child_datapipe: bool = True

    def __init__(self, main_datapipe: _Branching, instance_id: int):
        self.main_datapipe, self.instance_id = main_datapipe, instance_id

    def __iter__(self) -> Iterator[Any]:
        return self.main_datapipe.get_next_element_by_instance(self.instance_id)

    def __len__(self) -> int:
        return sized(self, [self.main_datapipe])[0]

    def _begin_iterator(self) -> int:
        main = self.main_datapipe
        if main._valid_iterator_id is None:
            main._valid_iterator_id = 0
        elif main._valid_iterator_id == self._valid_iterator_id:
            main._valid_iterator_id += 1
            if not main.is_every_instance_exhausted():
                warn("Some child DataPipes are not exhausted when __iter__ is called: all of them begin anew")
            main.reset()
        self._number_of_samples_yielded = 0
        self._valid_iterator_id = main._valid_iterator_id
        return main._valid_iterator_id

    def _is_valid(self, number: int) -> bool:
        return number == self._valid_iterator_id == self.main_datapipe._valid_iterator_id


def _instances(num_instances: int) -> int:
    if num_instances < 1:
        raise ValueError(f"Expected `num_instances` larger than 0, but {num_instances} is found")
    return num_instances


@functional_datapipe("fork")
class ForkerIterDataPipe(IterDataPipe[Any]):
    """Several datapipes with the same elements: a list of them.

    buffer_size: how far one may be ahead of another: BufferError beyond. copy: None, "shallow" or "deep". One instance is
    the datapipe itself. Raises ValueError for none.

    >>> import rushlight as torch
    >>> one, other = torch.utils.data.datapipes.iter.IterableWrapper(range(3)).fork(2)
    >>> list(one), list(other)
    ([0, 1, 2], [0, 1, 2])
    """

    def __new__(  # type: ignore[misc]
        cls,
        datapipe: IterDataPipe[Any],
        num_instances: int,
        buffer_size: int = 1000,
        copy: Literal["shallow", "deep"] | None = None,
    ) -> IterDataPipe[Any] | list[_ChildDataPipe]:
        if _instances(num_instances) == 1:
            return datapipe
        main = _ForkerIterDataPipe(datapipe, num_instances, buffer_size, copy)
        return [_ChildDataPipe(main, i) for i in range(num_instances)]


@functional_datapipe("demux")
class DemultiplexerIterDataPipe(IterDataPipe[Any]):
    """Several datapipes, each with the elements of which `classifier_fn` says its number: a list of them.

    drop_none: elements of None are for none; else they are refused. buffer_size: how many elements may wait: BufferError beyond.
    """

    def __new__(  # type: ignore[misc]
        cls,
        datapipe: IterDataPipe[Any],
        num_instances: int,
        classifier_fn: Callable[[Any], int | None],
        drop_none: bool = False,
        buffer_size: int = 1000,
    ) -> list[_ChildDataPipe]:
        _check_unpickable_fn(classifier_fn)
        main = _DemultiplexerIterDataPipe(datapipe, _instances(num_instances), classifier_fn, drop_none, buffer_size)
        return [_ChildDataPipe(main, i) for i in range(num_instances)]
