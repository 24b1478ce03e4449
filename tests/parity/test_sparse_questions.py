"""Questions that sparse tensors answer without anything being computed."""

from typing import Any

import pytest

import rushlight

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]
QUESTIONS = ("element_size", "is_signed", "is_inference", "is_conj", "is_neg")


def answers(t: Any) -> list[Any]:
    made = [
        t.eye(2).to_sparse(),
        t.eye(2).to_sparse_csr(),
        (t.eye(2) + 1j).to_sparse(),
        t.eye(2, dtype=t.uint8).to_sparse(),
    ]
    with t.inference_mode():
        made.append(t.eye(2).to_sparse())
    return [(*(getattr(x, name)() for name in QUESTIONS), x.resolve_conj() is x, x.resolve_neg() is x) for x in made]


def test_what_sparse_tensors_answer() -> None:
    assert answers(rushlight) == answers(torch)


def parts(t: Any) -> list[Any]:
    z, x = t.tensor([[1j, 0], [2, 3]]).to_sparse(), t.tensor([[0.0, 1], [5, 0]]).to_sparse()
    found = [
        z.conj(),
        t.conj(z),
        z.real,
        t.imag(z),
        z.mH,
        x // 2,
        (x.to_sparse_csr() * t.ones(2, 2)).layout,
        x.stride(),
        x.stride(1),
    ]
    alone = [t.sparse_coo_tensor([[0]], [1.0], (2,)), t.sparse_coo_tensor(t.zeros(0, 1).long(), [5.0], ())]
    return [str(each.to_dense() if hasattr(each, "to_dense") else each) for each in found] + [
        each.is_coalesced() for each in alone
    ]


def test_parts_of_numbers_and_of_memory() -> None:
    assert parts(rushlight) == parts(torch)


@pytest.mark.parametrize("ask", [lambda x: x.size(2), lambda x: x.to_sparse_csr().stride(), lambda x: x.imag])
def test_what_sparse_tensors_refuse_to_answer(ask: Any) -> None:
    said = []
    for t in (rushlight, torch):
        with pytest.raises((IndexError, RuntimeError)) as error:
            ask(t.eye(2).to_sparse())
        said.append((error.type, str(error.value)[:40]))
    assert said[0] == said[1]
