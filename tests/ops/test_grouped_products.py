"""Products of groups: each group's own matrix, gradients of all of them, and what is refused."""

import pytest

import rushlight as torch

grouped_mm = torch.nn.functional.grouped_mm


def ends(*values: int):
    return torch.tensor(values, dtype=torch.int32)


@pytest.mark.parametrize(
    ("a", "b", "equation"),
    [
        ((7, 3), (3, 3, 2), "rows"),
        ((3, 2, 3), (3, 7), "columns"),
        ((2, 7), (7, 4), "both"),
        ((3, 2, 4), (3, 4, 5), "batches"),
    ],
)
def test_every_group_is_multiplied_by_its_own(a, b, equation) -> None:
    x, y = (torch.randn(*shape).requires_grad_() for shape in (a, b))
    spans = [(0, 2), (2, 2), (2, 6)]
    found = grouped_mm(x, y, offs=None if equation == "batches" else ends(2, 2, 6))
    wanted = {
        "rows": lambda: torch.cat([*(x[s:e] @ y[i] for i, (s, e) in enumerate(spans)), torch.zeros(1, 2)]),
        "columns": lambda: torch.cat([*(x[i] @ y[:, s:e] for i, (s, e) in enumerate(spans)), torch.zeros(2, 1)], 1),
        "both": lambda: torch.stack([x[:, s:e] @ y[s:e] for s, e in spans]),
        "batches": lambda: torch.bmm(x, y),
    }[equation]()
    torch.testing.assert_close(found, wanted)
    weight = torch.randn(*found.shape)
    ours, theirs = (torch.autograd.grad((v * weight).sum(), (x, y)) for v in (found, wanted))
    torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (lambda x, y: (x.double(), y.double(), ends(2, 4, 7)), "Expected mat_a to be Float32"),
        (lambda x, y: (x, y.bfloat16(), ends(2, 4, 7)), "the same dtype"),
        (lambda x, y: (x, y, torch.tensor([2, 4, 7])), "int32"),
        (lambda x, y: (x, y, None), "Have to provide offsets"),
        (lambda x, y: (x, y, ends(2, 7)), "one end for each of 3 groups"),
        (lambda x, y: (x, y, ends(4, 2, 7)), "in order"),
        (lambda x, y: (x, y, ends(2, 4, 8)), "in order"),
        (lambda x, y: (x[0], y, ends(2, 4, 8)), "2 or 3d"),
    ],
)
def test_what_does_not_go_together_is_refused(arguments, words) -> None:
    a, b, offs = arguments(torch.randn(7, 3), torch.randn(3, 3, 2))
    with pytest.raises(RuntimeError, match=words):
        grouped_mm(a, b, offs=offs)


def test_bias_and_other_dtypes_of_results_are_refused() -> None:
    x, y = torch.randn(7, 3), torch.randn(3, 3, 2)
    for more in ({"bias": torch.ones(2)}, {"out_dtype": torch.float64}):
        with pytest.raises(RuntimeError):
            grouped_mm(x, y, offs=ends(2, 4, 7), **more)
