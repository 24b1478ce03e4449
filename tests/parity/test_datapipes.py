"""Datapipes: what they give, refuse and warn of, beside PyTorch's."""

from __future__ import annotations

import importlib
import io
import os
import re
import warnings
from pathlib import Path
from typing import Any

import pytest

import rushlight

reference = pytest.importorskip("torch")
pytestmark = pytest.mark.parity

PROGRAMS = """
list(d().map(one))
list(w([(1, 2, 3)]).map(two, input_col=[0, 2]))
list(w([(1, 2, 3)]).map(two, input_col=[2, 0], output_col=-1))
list(w([{"x": 1, "y": 2}]).map(two, input_col=["x", "y"], output_col="z"))
d().map(one, output_col=1)
d().map(two, input_col=0)
d().map(1)
list(d().filter(odd)), list(w([(1, 2), (3, 4)]).filter(odd, input_col=0))
list(d().filter(one))
list(d().batch(2)), list(d().batch(2, drop_last=True)), len(d().batch(2))
d().batch(0)
list(d().batch(2).batch(2).unbatch(-1)), list(d().batch(2).batch(2).unbatch(2))
list(d().batch(2).unbatch(-2))
list(d().unbatch())
list(d().batch(2).collate())
list(d().groupby(rest, keep_key=True)), list(d(12).groupby(rest, buffer_size=4))
list(d().groupby(one, buffer_size=3, group_size=2))
list(d().groupby(one, buffer_size=3, group_size=2, drop_remaining=True))
d().groupby(rest, buffer_size=1, group_size=3)
list(d().concat(w([7]))), list(d(3).zip(w("ab"))), list(d(3).mux(w([10, 11, 12, 13]))), len(d().mux(d(3)))
dp.iter.Concater()
dp.iter.Zipper(1)
[list(p) for p in d().fork(2)]
[list(p) for p in d().fork(2, buffer_size=2)]
d().fork(2, copy="x")
d().fork(0)
[list(p) for p in d().demux(2, rest)]
[list(p) for p in d().demux(2, rest, buffer_size=1)]
[list(p) for p in d().demux(2, one)]
len(d().demux(2, rest)[0])
list(d().shuffle()), list(d(10).shuffle(buffer_size=3)), list(d().shuffle().set_seed(5)), list(d().shuffle().set_shuffle(False))
list(d(6).batch(2).shuffle(unbatch_level=1).set_seed(3))
list(m().shuffle()), list(m().shuffle(indices=[4, 2, 0]).set_seed(1))
m().batch(2)[1], len(m().zip(m())), list(m().concat(m()))[6], list(m().map(odd))
m().batch(2)[5]
m().concat(m())[20]
len(w(iter([1])))
list(dp.iter.Sampler(d())), len(dp.iter.Sampler(d()))
[traversed(p) for p in (d().map(one).batch(2), d().zip(d(3)))], traversed(d().fork(2)[0])
sharded(d(12).sharding_filter(), 3, 2), sharded(d().map(one).sharding_filter(), 2, 0)
d().sharding_filter().apply_sharding(2, 2)
sharded(d().sharding_filter().map(one).sharding_filter(), 2, 0)
list(settings.apply_shuffle_settings(d(), shuffle=False)), len(settings.apply_shuffle_settings(d(), shuffle=True))
list(t.utils.data.DataLoader(d(), batch_size=2)), list(t.utils.data.DataLoader(d().shuffle(), batch_size=None, shuffle=True))
list(pickle.loads(pickle.dumps(d().batch(2))))
t.utils.data.functional_datapipe("map")(dp.iter.Filter)
d().nothing_like_it
again(d())
again(d().map(one))
restored(d(10).map(one), 4), restored(d(3), 5)
[str(x) for x in (d(), d().batch(2))], t.utils.data.DataChunk([1, 2]).as_str()
"""


def one(x: Any) -> Any:
    return x


def two(x: Any, y: Any) -> Any:
    return x + y


def odd(x: Any) -> bool:
    return bool(x % 2)


def rest(x: Any) -> int:
    return int(x % 2)


def tools(t: Any) -> dict[str, Any]:
    data = f"{t.__name__}.utils.data"
    dp, graph, settings, snapshot = (
        importlib.import_module(f"{data}.{name}")
        for name in ("datapipes", "graph", "graph_settings", "datapipes.utils.snapshot")
    )

    def traversed(pipe: Any) -> list[str]:
        return [type(p).__name__ for p in settings.get_all_graph_pipes(graph.traverse_dps(pipe))]

    def sharded(pipe: Any, count: int, number: int) -> Any:
        settings.apply_sharding(pipe, count, number)
        return list(pipe), len(pipe)

    def again(pipe: Any) -> Any:
        former = iter(pipe)
        found = [next(former), next(iter(pipe))]
        return [*found, next(former)]

    def restored(pipe: Any, n: int) -> Any:
        snapshot._simple_graph_snapshot_restoration(pipe, n)
        return list(pipe), list(pipe)

    d = lambda n=5: dp.iter.IterableWrapper(range(n))
    return {"t": t, "dp": dp, "settings": settings, "d": d, "w": dp.iter.IterableWrapper, "traversed": traversed, "sharded": sharded,
            "m": lambda: dp.map.SequenceWrapper(range(5)), "again": again, "restored": restored}  # fmt: skip


def told(t: Any, program: str) -> Any:
    t.manual_seed(0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = re.sub(r"torch|rushlight|0x\w+", "", repr(eval(program, {**globals(), **tools(t)})))
        except Exception as error:
            found = type(error).__name__
    return found, [w.category.__name__ for w in caught]


@pytest.mark.parametrize("program", PROGRAMS.strip().splitlines())
def test_given_alike(program: str) -> None:
    assert told(rushlight, program) == told(reference, program)


def files(t: Any, folder: Path) -> Any:
    lister, names = tools(t)["dp"].iter.FileLister, lambda pipe: [os.path.relpath(p, folder) for p in pipe]
    found = [names(lister(str(folder), *masks)) for masks in ((), ("*.txt",), (["*.json", "c*"],))]
    deep = names(lister(str(folder), recursive=True))
    pieces = [x for _, x in lister(str(folder)).open_files(mode="b").read_from_stream(3)]
    decoded = [x for _, x in lister(str(folder)).open_files(mode="b").routed_decode()]
    common = importlib.import_module(f"{t.__name__}.utils.data.datapipes.utils.common")
    opened = [x.read() for _, x in common.get_file_binaries_from_pathnames([str(folder / "a.txt")], "b")]
    return found, deep, pieces, decoded, opened


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_files(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    for name, text in (("a.txt", "hello"), ("b.json", '{"x": 1}'), ("c.txt", "there"), ("inner/d.txt", "deep")):
        (tmp_path / name).write_text(text)
    assert files(rushlight, tmp_path) == files(reference, tmp_path)


def test_streams_close_with_their_children() -> None:
    def streams(t: Any) -> Any:
        wrapper = importlib.import_module(f"{t.__name__}.utils.data.datapipes.utils.common").StreamWrapper
        parent = wrapper(io.BytesIO(b"a\nb"), name="parent")
        child = wrapper(io.BytesIO(b""), parent)
        lines = list(parent)
        parent.autoclose()
        waiting = parent.closed
        wrapper.close_streams({"a": [child]})
        return lines, waiting, parent.closed, child.closed

    assert streams(rushlight) == streams(reference)
