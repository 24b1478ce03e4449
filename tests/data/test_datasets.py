"""Datasets, samplers and collation."""

from __future__ import annotations

import collections
from collections import Counter, OrderedDict, UserDict

import numpy as np
import pytest

import rushlight as torch
from rushlight.utils import data


class Squares(data.Dataset):
    def __init__(self, n):
        self.n, self.whole = n, []

    def __getitem__(self, i):
        return i * i

    def __getitems__(self, keys):
        self.whole.append(keys)
        return [i * i for i in keys]

    def __len__(self):
        return self.n


class Count(data.IterableDataset):
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return iter(range(self.n))


def test_tensor_dataset():
    d = data.TensorDataset(torch.arange(10), torch.arange(20).reshape(10, 2))
    assert len(d) == 10
    a, b = d[3]
    assert a.item() == 3 and b.tolist() == [6, 7]
    assert d[2:4][0].tolist() == [2, 3]
    with pytest.raises(AssertionError, match="Size mismatch between tensors"):
        data.TensorDataset(torch.ones(2), torch.ones(3))


def test_stack_dataset():
    assert data.StackDataset(Squares(3), range(3))[2] == (4, 2)
    named = data.StackDataset(a=Squares(3), b=range(3))
    assert named[1] == {"a": 1, "b": 1} and len(named) == 3
    assert named.__getitems__([2, 0]) == [{"a": 4, "b": 2}, {"a": 0, "b": 0}]
    for args, kwargs, message in (
        ((range(2), range(3)), {}, "Size mismatch"),
        ((), {}, "At least one"),
        ((range(2),), {"a": range(2)}, "both"),
    ):
        with pytest.raises(ValueError, match=message):
            data.StackDataset(*args, **kwargs)


def test_nested_items_of_the_wrong_number():
    class Wrong(Squares):
        def __getitems__(self, keys):
            return [0]

    with pytest.raises(ValueError, match="Expected 2, got 1"):
        data.Subset(Wrong(3), [0, 1, 2]).__getitems__([0, 1])


def test_concat_and_chain():
    d = Squares(3) + Squares(2)
    assert type(d) is data.ConcatDataset and len(d) == 5 and d.cumulative_sizes == [3, 5]
    assert [d[i] for i in range(5)] == [0, 1, 4, 0, 1]
    assert d[-1] == 1
    for i, error in ((-6, ValueError), (5, IndexError)):
        with pytest.raises(error):
            d[i]
    with pytest.raises(AssertionError, match="empty"):
        data.ConcatDataset([])
    with pytest.raises(AssertionError, match="IterableDataset"):
        data.ConcatDataset([Count(2)])
    chain = Count(2) + Count(3)
    assert type(chain) is data.ChainDataset and list(chain) == [0, 1, 0, 1, 2]
    with pytest.raises(AssertionError, match="only supports IterableDataset"):
        list(data.ChainDataset([Squares(2)]))
    with pytest.raises(NotImplementedError):
        data.Dataset()[0]
    with pytest.raises(NotImplementedError):
        iter(data.Sampler())


def test_subset():
    d = Squares(10)
    s = data.Subset(d, [4, 2])
    assert (len(s), s[0], s.__getitems__([1, 0])) == (2, 16, [4, 16])
    assert data.Subset(np.arange(10), [4, 2, 7])[[0, 2]].tolist() == [4, 7]


def test_random_split():
    g = torch.Generator().manual_seed(1)
    parts = data.random_split(range(10), [3, 7], g)
    assert [len(p) for p in parts] == [3, 7]
    assert sorted(x for p in parts for x in (p[i] for i in range(len(p)))) == list(range(10))
    again = data.random_split(range(10), [3, 7], torch.Generator().manual_seed(1))
    assert [p.indices for p in parts] == [p.indices for p in again]
    assert [len(p) for p in data.random_split(range(11), [0.5, 0.5])] == [6, 5]
    assert [len(p) for p in data.random_split(range(10), [0.3, 0.3, 0.4])] == [3, 3, 4]
    with pytest.warns(UserWarning, match="index 1 is 0"):
        data.random_split(range(1), [0.5, 0.5])
    for lengths, message in (
        ([3, 3], "does not equal"),
        ([0.5, 0.6], "does not equal"),
        ([1.5, -0.5], "between 0 and 1"),
    ):
        with pytest.raises(ValueError, match=message):
            data.random_split(range(10), lengths)


# Samplers ------------------------------------------------------------------------------------------


def test_random_sampler():
    torch.manual_seed(3)
    first = list(data.RandomSampler(range(100)))
    torch.manual_seed(3)
    assert list(data.RandomSampler(range(100))) == first
    assert sorted(first) == list(range(100)) and first != sorted(first)
    more = list(data.RandomSampler(range(4), num_samples=10))
    assert len(more) == 10 and sorted(more[:4]) == sorted(more[4:8]) == list(range(4))
    drawn = list(data.RandomSampler(range(4), replacement=True, num_samples=3000))
    assert len(drawn) == 3000 and all(650 < n < 850 for n in Counter(drawn).values())
    g = torch.Generator().manual_seed(5)
    sampler = data.RandomSampler(range(20), generator=g)
    assert list(sampler) != list(sampler)
    for options, error in (
        ({"replacement": 1}, TypeError),
        ({"num_samples": 0}, ValueError),
        ({"num_samples": 1.5}, ValueError),
    ):
        with pytest.raises(error):
            data.RandomSampler(range(4), **options)
    with pytest.raises(ValueError, match="num_samples=0"):
        data.RandomSampler([])


def test_subset_random_sampler():
    sampler = data.SubsetRandomSampler([10, 20, 30], torch.Generator().manual_seed(0))
    assert sorted(sampler) == [10, 20, 30] and len(sampler) == 3


def test_weighted_sampler():
    sampler = data.WeightedRandomSampler([0, 1, 3], 4000, generator=torch.Generator().manual_seed(0))
    counts = Counter(sampler)
    assert 0 not in counts and 2.5 < counts[2] / counts[1] < 3.6
    assert sorted(data.WeightedRandomSampler(torch.ones(4), 4, replacement=False)) == [0, 1, 2, 3]
    for args, message in (
        (([1], 0), "num_samples"),
        (([1], 1, 1), "replacement"),
        (([[1]], 1), "1d sequence"),
    ):
        with pytest.raises(ValueError, match=message):
            data.WeightedRandomSampler(*args)
    for weights, replacement in (([-1, 1], True), ([0, 0], True), ([float("nan")], True), ([1, 0], False)):
        with pytest.raises(RuntimeError):
            list(data.WeightedRandomSampler(weights, 2, replacement))


def test_batch_sampler():
    assert list(data.BatchSampler(range(5), 2, False)) == [[0, 1], [2, 3], [4]]
    assert list(data.BatchSampler(range(5), 2, True)) == [[0, 1], [2, 3]]
    assert [len(data.BatchSampler(range(5), 2, drop)) for drop in (False, True)] == [3, 2]
    for size, drop in ((0, False), (True, False), (1.0, False), (1, 2)):
        with pytest.raises(ValueError):
            data.BatchSampler(range(5), size, drop)


def test_distributed_sampler():
    def parts(n, replicas, **options):
        return [list(data.DistributedSampler(range(n), replicas, rank, **options)) for rank in range(replicas)]

    assert parts(11, 3, shuffle=False) == [[0, 3, 6, 9], [1, 4, 7, 10], [2, 5, 8, 0]]
    assert parts(11, 3, shuffle=False, drop_last=True) == [[0, 3, 6], [1, 4, 7], [2, 5, 8]]
    assert parts(2, 5, shuffle=False) == [[0], [1], [0], [1], [0]]
    assert sorted(i for part in parts(12, 3) for i in part) == list(range(12))
    sampler = data.DistributedSampler(range(12), 3, 0)
    first = list(sampler)
    assert first == list(sampler) and len(sampler) == 4
    sampler.set_epoch(1)
    assert first != list(sampler)
    with pytest.raises(ValueError, match="Invalid rank"):
        data.DistributedSampler(range(3), 2, 2)
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        data.DistributedSampler(range(3))


# Batches -------------------------------------------------------------------------------------------

Pair = collections.namedtuple("Pair", "x y")


@pytest.mark.parametrize(
    ("batch", "values", "dtype"),
    [
        ([1, 2], [1, 2], torch.int64),
        ([1.5, 2], [1.5, 2.0], torch.float64),
        ([True, False], [True, False], torch.bool),
        ([np.float32(1), np.float32(2)], [1.0, 2.0], torch.float32),
        ([np.array(3), np.array(4)], [3, 4], torch.int64),
        ([np.ones(2), np.zeros(2)], [[1.0, 1.0], [0.0, 0.0]], torch.float64),
    ],
)
def test_collate_numbers_and_arrays(batch, values, dtype):
    t = data.default_collate(batch)
    assert t.tolist() == values and t.dtype is dtype


def test_collate_containers():
    collate = data.default_collate
    assert collate(["a", "b"]) == ["a", "b"]
    assert collate([b"a"]) == [b"a"]
    assert [t.tolist() for t in collate([(1, 2.0), (3, 4.0)])] == [[1, 3], [2.0, 4.0]]
    assert type(collate([(1,), (2,)])) is list
    pair = collate([Pair(1, 2), Pair(3, 4)])
    assert type(pair) is Pair and pair.x.tolist() == [1, 3]
    ordered = collate([OrderedDict(b=1, a="x"), OrderedDict(b=2, a="y")])
    assert type(ordered) is OrderedDict and ordered["b"].tolist() == [1, 2] and ordered["a"] == ["x", "y"]
    user = collate([UserDict(a=1), UserDict(a=2)])
    assert type(user) is UserDict and user["a"].tolist() == [1, 2]
    assert collate([{}]) == {} and collate([()]) == []
    nested = collate([{"a": [torch.ones(2), {"b": 1}]}, {"a": [torch.zeros(2), {"b": 2}]}])
    assert nested["a"][0].shape == (2, 2) and nested["a"][1]["b"].tolist() == [1, 2]


@pytest.mark.parametrize("batch", [[None], [object()], [1j], [np.array("a")], [np.array([None])]])
def test_collate_refuses_what_it_does_not_know(batch):
    with pytest.raises(TypeError, match="default_collate: batch must contain"):
        data.default_collate(batch)


def test_collate_refuses_uneven_batches():
    with pytest.raises(RuntimeError, match="equal size"):
        data.default_collate([(1,), (1, 2)])
    with pytest.raises(RuntimeError, match=r"\[2\] at entry 0 and \[3\] at entry 1"):
        data.default_collate([np.ones(2), np.ones(3)])
    with pytest.raises(RuntimeError):
        data.default_collate([torch.ones(2), torch.ones(3)])
    with pytest.raises(KeyError):
        data.default_collate([{"a": 1, "b": 2}, {"a": 1}])


def test_collate_keeps_gradients():
    x = torch.ones(2, requires_grad=True)
    data.default_collate([x, x]).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_own_collate_functions():
    from rushlight.utils.data._utils.collate import collate, default_collate_fn_map

    class Text(str):
        pass

    table = {Text: lambda batch, *, collate_fn_map=None: "".join(batch), **default_collate_fn_map}
    assert collate([(Text("a"), 1), (Text("b"), 2)], collate_fn_map=table)[0] == "ab"


def test_convert():
    convert = data.default_convert
    assert convert(1) == 1 and convert("s") == "s"
    assert convert(np.ones(2)).dtype is torch.float64
    assert convert((np.int32(2),))[0].dtype is torch.int32
    assert convert({"a": np.ones(1)})["a"].tolist() == [1.0]
    assert type(convert(Pair(np.ones(1), 2)).x) is torch.Tensor
    assert type(convert([np.ones(1)])) is list
    assert isinstance(convert(np.array("a")), np.ndarray)
    x = torch.ones(1)
    assert convert(x) is x


def test_a_batch_of_numbers_has_the_dtype_that_holds_all_of_them():
    collate = torch.utils.data.default_collate
    assert collate([1, 2.5]).tolist() == [1.0, 2.5] and collate([1, 2.5]).dtype is torch.float32
    assert collate([True, 2]).dtype is torch.int64 and collate([1, 1j]).dtype is torch.complex64
    assert collate([{"a": 1}, {"a": 2.5}])["a"].tolist() == [1.0, 2.5]
    assert collate([np.ones(2, np.float32), np.ones(2, np.int32)]).dtype is torch.float32
    assert collate([np.float64(1), 2]).tolist() == [1.0, 2.0]
    for batch in ([2**70, 1], [1, "a"]):
        with pytest.raises((ValueError, TypeError)):
            collate(batch)


def test_seeds_are_whole_numbers_for_a_generator():
    with pytest.raises(RuntimeError, match="manual_seed expected a long, but got float"):
        torch.Generator().manual_seed(1.5)
    assert torch.manual_seed(1.5).initial_seed() == 1


@pytest.mark.parametrize("dtype", ["M8[s]", "m8[s]", "g", ">f4"])
def test_arrays_that_no_tensor_holds_are_refused_in_a_batch(dtype):
    with pytest.raises((TypeError, ValueError)):
        data.default_collate([np.ones(1, dtype=dtype)] * 2)
