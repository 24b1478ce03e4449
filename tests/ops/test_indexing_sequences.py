"""Indices that are sequences of indices, and 0-dimensional masks of bytes; reversed()."""

import numpy as np
import pytest

import rushlight as torch

SEVERAL = "non-tuple sequence for multidimensional indexing is deprecated"
LONG, MASK = torch.tensor([0, 1]), torch.tensor([True, False, True])


def nine():
    return torch.arange(9).reshape(3, 3)


@pytest.mark.parametrize(("index", "want"), [
    ([[0, 1], [1, 2]], [1, 5]), ([LONG, LONG + 1], [1, 5]), ([MASK, MASK], [0, 8]), ([[0, 1], 1], [1, 4]),
    ([0, [0, 1]], [0, 1]), ([[0, 1], [1]], [1, 4]), ([(0, 1), (1, 2)], [1, 5]), ([range(2), range(2)], [0, 4]),
    ([[True, False, True], [0, 1]], [0, 7]), ([torch.tensor(0), 1], 1), ([torch.tensor(0), torch.tensor(1)], 1),
    ([np.array([0, 1]), np.array([1, 2])], [1, 5]), ([[0, 1]], [[0, 1, 2], [3, 4, 5]]), ([[], []], []),
    ([slice(None), 0], [0, 3, 6]), ([[0, 1], slice(0, 2)], [[0, 1], [3, 4]]),
])  # fmt: skip
def test_a_list_of_indices_has_one_for_each_dimension(index, want):
    with pytest.warns(UserWarning, match=SEVERAL):
        got = nine()[index]
    assert got.tolist() == want


@pytest.mark.parametrize("index", [[0, 1], [True, False, True], [], [np.int64(0), 1], [[0, 1]] * 32, range(2)])
def test_a_list_of_numbers_or_a_long_list_is_one_index(index):
    assert nine()[index].tolist() == nine().numpy()[np.asarray(index, None if index else int)].tolist()


def test_a_tuple_around_a_list_of_lists_makes_it_one_index():
    assert nine()[([[0, 1], [1, 2]],)].shape == (2, 2, 3)


def test_assignment_takes_a_list_of_indices_alike():
    x = nine()
    with pytest.warns(UserWarning, match=SEVERAL):
        x[[[0, 1], [1, 2]]] = torch.tensor([50, 60])
    assert x.tolist() == [[0, 50, 2], [3, 4, 60], [6, 7, 8]]


def test_too_many_indices_in_a_list_are_refused():
    with pytest.warns(UserWarning, match=SEVERAL), pytest.raises(IndexError, match="too many indices"):
        nine()[[[0, 1], [1, 2], [0, 0]]]


@pytest.mark.filterwarnings("ignore:indexing with dtype torch.uint8")
@pytest.mark.parametrize("value", [0, 1, 200])
def test_a_single_byte_is_a_mask(value):
    byte = torch.tensor(value, dtype=torch.uint8)
    assert nine()[byte].shape == (int(value > 0), 3, 3)
    assert nine()[0, byte].shape == (int(value > 0), 3)
    assert torch.tensor(5)[byte].shape == (int(value > 0),)
    x = nine()
    x[byte] = 7
    assert x.tolist() == (torch.full((3, 3), 7) if value else nine()).tolist()


def test_reversed_turns_the_first_dimension_alone():
    assert reversed(nine()).tolist() == [[6, 7, 8], [3, 4, 5], [0, 1, 2]]
    assert reversed(torch.tensor(3)).item() == 3


@pytest.mark.filterwarnings("ignore:Using a non-tuple sequence")
def test_a_list_of_a_tensor_and_a_number_is_a_basic_index_of_two_dimensions():
    x = torch.arange(6).view(2, 3)
    part = x[[torch.tensor(0), -1]]
    assert part._is_view() and part.item() == 2
    x[[torch.tensor(1), 0]] = torch.tensor(9.0)  # cast, as into any view
    assert x.tolist() == [[0, 1, 2], [9, 4, 5]]


def test_assigning_to_the_index_false_changes_nothing_whatever_the_value():
    x = torch.arange(3)
    x[False] = torch.ones(5, 5)
    assert x.tolist() == [0, 1, 2] and x._version == 0


def test_dimensions_that_none_adds_have_the_strides_of_unsqueeze():
    x = torch.arange(6).view(2, 3)
    assert x[None].stride() == x.unsqueeze(0).stride() == (6, 3, 1)
    assert x[:, None].stride() == x.unsqueeze(1).stride() == (3, 3, 1)
    assert x[..., None].stride() == x.unsqueeze(2).stride() == (3, 1, 1)
    assert x[:1].expand(4, 3).stride() == (0, 1)


@pytest.mark.parametrize(
    "index", [np.array(1), (np.array(1), slice(None)), (..., np.array(2)), (0, np.array(1)), (np.array(0), None)]
)
def test_arrays_of_one_number_are_integers_in_a_recorded_assignment(index):
    as_integers = tuple(
        int(i) if isinstance(i, np.ndarray) else i for i in (index if isinstance(index, tuple) else (index,))
    )
    results = []
    for place in (index, as_integers):
        x, value = torch.ones(3, 4, requires_grad=True), torch.tensor(2.0, requires_grad=True)
        y = x * 1
        y[place] = value
        results.append([g.tolist() for g in torch.autograd.grad((y * torch.arange(12.0).view(3, 4)).sum(), (x, value))])
    assert results[0] == results[1]


@pytest.mark.parametrize("indices", [[], (None,)])
def test_index_put_without_a_tensor_among_its_indices_is_refused(indices):
    with pytest.raises(RuntimeError, match=r"index_put.*has no tensor"):
        torch.zeros(3).index_put(indices, torch.ones(3))
