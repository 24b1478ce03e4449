"""Settings of all datapipes that one is made of: shards, shuffling, seeds."""

from __future__ import annotations

import inspect
from typing import Any

from rushlight.basics import dtypes
from rushlight.basics.caller import warn
from rushlight.basics.signatures import signature_of
from rushlight.dispatch.named import named
from rushlight.generator import Generator
from rushlight.utils.data.datapipes.iter.sharding import SHARDING_PRIORITIES, _ShardingIterDataPipe
from rushlight.utils.data.graph import DataPipe, DataPipeGraph, traverse_dps

__all__ = ["apply_random_seed", "apply_sharding", "apply_shuffle_seed", "apply_shuffle_settings", "get_all_graph_pipes"]


def get_all_graph_pipes(graph: DataPipeGraph) -> list[DataPipe]:
    """All datapipes of a graph, each once."""
    found: dict[int, DataPipe] = {}
    for number, (pipe, inner) in graph.items():
        found[number] = pipe
        found.update((id(p), p) for p in get_all_graph_pipes(inner))
    return list(found.values())


def _is_sharding_datapipe(datapipe: object) -> bool:
    if isinstance(datapipe, _ShardingIterDataPipe):
        return True
    return inspect.isroutine(getattr(type(datapipe), "apply_sharding", None))


def apply_sharding(
    datapipe: DataPipe, num_of_instances: int, instance_id: int, sharding_group: object = SHARDING_PRIORITIES.DEFAULT
) -> DataPipe:
    """Have each sharding datapipe give the elements of one of several instances.

    Raises RuntimeError for two of them one behind the other, which would drop elements.
    """

    def walk(graph: DataPipeGraph, behind: bool) -> None:
        for pipe, inner in graph.values():
            here = _is_sharding_datapipe(pipe)
            if here and behind:
                raise RuntimeError(
                    f"Sharding twice on a single pipeline would lose elements: one sharding datapipe is behind {pipe!r}"
                )
            if here:
                _shard(pipe, num_of_instances, instance_id, sharding_group)
            walk(inner, behind or here)

    walk(traverse_dps(datapipe), False)
    return datapipe


def _shard(pipe: Any, count: int, number: int, group: Any) -> None:
    """Call a datapipe's `apply_sharding`, with the group if it takes one."""
    takes = len(signature_of(pipe.apply_sharding).parameters)
    pipe.apply_sharding(count, number, **({"sharding_group": group} if takes >= 3 else {}))


def _shuffles(pipe: object) -> bool:
    kind = type(pipe)
    return all(inspect.isroutine(getattr(kind, name, None)) for name in ("set_shuffle", "set_seed"))


def apply_shuffle_settings(datapipe: DataPipe, shuffle: bool | None = None) -> DataPipe:
    """Turn the shuffling datapipes on or off; where there are none to turn on, one is put behind, with a warning."""
    if shuffle is None:
        return datapipe
    pipes = [p for p in get_all_graph_pipes(traverse_dps(datapipe)) if _shuffles(p)]
    if not pipes and shuffle:
        warn("`shuffle=True` was set, but the datapipe does not contain a `Shuffler`: one is put at its end, which mixes what "
             "its buffer of 10000 elements holds")  # fmt: skip
        datapipe = datapipe.shuffle()
        pipes = [datapipe]
    for pipe in pipes:
        turned: Any = pipe
        turned.set_shuffle(shuffle)
    return datapipe


def apply_shuffle_seed(datapipe: DataPipe, rng: Any) -> DataPipe:
    """An older name of `apply_random_seed`."""
    warn("`apply_shuffle_seed` is deprecated: use `apply_random_seed`", FutureWarning)
    return apply_random_seed(datapipe, rng)


def apply_random_seed(datapipe: DataPipe, rng: Generator) -> DataPipe:
    """Give each datapipe that draws random numbers a seed from `rng`."""
    for pipe in get_all_graph_pipes(traverse_dps(datapipe)):
        if inspect.isroutine(getattr(type(pipe), "set_seed", None)):
            seeded: Any = pipe
            seeded.set_seed(int(named.empty((), dtype=dtypes.int64).random_(generator=rng).item()))
    return datapipe
