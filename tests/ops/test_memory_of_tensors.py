"""Memory shared, copied, resized and filled: out=, storages, conversions, new tensors."""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import rushlight as torch


@pytest.mark.filterwarnings("ignore:torch.range is deprecated")
@pytest.mark.parametrize("make", [lambda v: torch.arange(0, 4, out=v), lambda v: torch.linspace(0, 3, 4, out=v),
                                  lambda v: torch.range(0, 3, out=v)], ids=["arange", "linspace", "range"])  # fmt: skip
def test_a_view_of_as_many_elements_is_filled_in_its_own_shape(make: Any) -> None:
    x = torch.zeros(4, 2)
    v = x[1:3]
    assert make(v) is v
    assert v.tolist() == [[0, 1], [2, 3]]
    assert x.tolist() == [[0, 0], [0, 1], [2, 3], [0, 0]]


def test_out_of_another_size_is_resized_over_the_same_memory() -> None:
    x = torch.zeros(3, 4)
    v = x[:, 1]
    with pytest.warns(UserWarning, match="was resized"):
        torch.add(torch.ones(4), 1, out=v)
    assert x.tolist() == [[0, 2, 2, 2], [2, 0, 0, 0], [0, 0, 0, 0]]
    assert v._base is x
    x.mul_(2)
    assert v.tolist() == [4, 4, 4, 4]


def test_a_resized_view_gets_gradients_of_the_memory_that_it_sees() -> None:
    x, a = torch.arange(6.0), torch.ones(6, requires_grad=True)
    v = x[:2]
    v.resize_(3)
    x.mul_(a)
    v.sum().backward()
    assert a.grad.tolist() == [0, 1, 2, 0, 0, 0]


@pytest.mark.parametrize("share", [lambda x: x[:2], lambda x: x.detach(), lambda x: x.data, lambda x: x.numpy(),
                                   lambda x: np.asarray(x)], ids=["view", "detach", "data", "numpy", "asarray"])  # fmt: skip
def test_memory_that_others_hold_does_not_grow_for_one_of_them(share: Any) -> None:
    x = torch.ones(4)
    other = share(x)
    with pytest.raises(RuntimeError, match="Trying to resize storage that is not resizable"):
        x.resize_(8)
    assert x.resize_(2).tolist() == [1, 1]
    del other
    assert x.resize_(8).shape == (8,)


def test_arrays_given_do_not_grow() -> None:
    array = np.ones(3)
    with pytest.raises(RuntimeError, match="Trying to resize storage that is not resizable"):
        torch.from_numpy(array).resize_(5)


def test_memory_keeps_its_elements_when_it_grows_again() -> None:
    x = torch.arange(6.0)
    x.resize_(2).resize_(6)
    assert x.tolist() == [0, 1, 2, 3, 4, 5]
    x.resize_(0).resize_(2, 4)
    assert x.tolist() == [[0, 1, 2, 3], [4, 5, 0, 0]]


def test_storages_and_tensors_copied_together_share_memory() -> None:
    x = torch.ones(3)
    for first, second in ((x, x.storage()), (x.storage(), x), (x[1:], x.untyped_storage())):
        a, b = copy.deepcopy([first, second])
        assert a.data_ptr() - (4 if first.data_ptr() != x.data_ptr() else 0) == b.data_ptr() != x.data_ptr()
    y, s = copy.deepcopy([x, x.storage()])
    s.fill_(5.0)
    assert y.tolist() == [5, 5, 5]
    s = copy.copy(x.storage())
    s[0] = 7.0
    assert x.tolist() == [1, 1, 1]


def test_the_size_of_a_storage_counts_its_elements() -> None:
    x = torch.ones(1000)
    assert sys.getsizeof(x.storage()) >= 4000
    assert sys.getsizeof(x.untyped_storage()) >= 4000
    assert x.storage().type() == "torch.FloatStorage"
    assert not x.storage().is_shared()


@pytest.mark.parametrize("convert", [lambda c: c.float(), lambda c: c.to(torch.float32), lambda c: c.type(torch.float32),
                                     lambda c: torch.asarray(c, dtype=torch.float32), lambda c: torch.zeros(3).copy_(c)])  # fmt: skip
def test_the_real_part_that_a_conversion_makes_is_a_copy(convert: Any) -> None:
    c = torch.ones(3, dtype=torch.complex64)
    with pytest.warns(UserWarning, match="discards the imaginary part"):
        convert(c).add_(1)
    assert c.tolist() == [1, 1, 1]
    c.real.add_(1)
    assert c.tolist() == [2, 2, 2]


def test_new_takes_a_size_by_name() -> None:
    x = torch.ones(1, dtype=torch.float64)
    assert x.new(size=(3, 4)).shape == (3, 4)
    assert torch.Tensor(size=(2, 3)).shape == torch.FloatTensor(size=(2, 3)).shape == (2, 3)


def test_strides_of_nothing_are_those_of_sizes_of_one() -> None:
    for shape, strides in (
        ((0,), (1,)),
        ((0, 2), (2, 1)),
        ((2, 0), (1, 1)),
        ((2, 0, 3), (3, 3, 1)),
        ((3, 0, 0, 2), (2, 2, 2, 1)),
    ):
        assert torch.empty(shape).stride() == strides
        assert (torch.empty(shape) + 1).stride() == strides


@pytest.fixture
def deterministic() -> Iterator[None]:
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


@pytest.mark.usefixtures("deterministic")
def test_memory_that_could_hold_anything_is_filled_where_determinism_is_asked_for() -> None:
    made = [torch.empty(2), torch.empty_like(torch.ones(2)), torch.ones(1).new_empty(2), torch.empty_strided((2,), (1,)),
            torch.Tensor(2), torch.ones(1).new(2), torch.empty_permuted((2,), (0,)), torch.ones(0).resize_(2),
            torch.empty(2, dtype=torch.bfloat16)]  # fmt: skip
    assert all(t.isnan().all() for t in made)
    assert torch.ones(1).resize_(2).isnan().tolist() == [False, True]
    assert torch.empty(1, dtype=torch.int32).item() == 2**31 - 1
    assert torch.empty(1, dtype=torch.bool).item() is True
    torch.utils.deterministic.fill_uninitialized_memory = False
    try:
        assert torch.ones(1).resize_(2).tolist() == [1, 0]
        with pytest.raises(RuntimeError, match="expected a bool"):
            torch.utils.deterministic.fill_uninitialized_memory = 1
    finally:
        torch.utils.deterministic.fill_uninitialized_memory = True
