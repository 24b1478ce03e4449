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
