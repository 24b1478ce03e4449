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


TWICE = "t.sparse_coo_tensor([[0, 0, 1], [1, 1, 0]], [1.0, 2, 3], (2, 3))"
PROGRAMS = f"""
t.add(t.ones(2, 3), {TWICE}, alpha=2)
t.add(t.ones(2, 3).int(), {TWICE}, alpha=2)
t.add(t.ones(2, 3).double(), {TWICE}, alpha=2)
t.ones(2, 3).add_({TWICE}.double())
t.ones(2, 3).int().add_({TWICE})
t.sub(t.ones(2, 3), {TWICE})
t.ones(2, 3) - {TWICE}
t.add(t.ones(2, 3), {TWICE}, out=t.empty(2, 3))
t.add({TWICE}, {TWICE}, out={TWICE})
t.neg({TWICE}, out=t.zeros(4, 4).to_sparse())
t.asin({TWICE}, out=t.zeros(2, 3))
t.mm({TWICE}, t.ones(3, 2), out=t.empty(0))
t.tensor([[1, 0]]).to_sparse().log1p_()
t.zeros_like({TWICE}, layout=t.strided)
t.tensor([[3.0]]).to_sparse().item()
float(t.tensor(3.0).to_sparse())
t.sub(t.ones(2).to_sparse(), t.ones(2, dtype=t.uint8).to_sparse())
t.sub(t.ones(2), t.ones(2, dtype=t.uint8).to_sparse())
t.ones(2).add_(t.ones(2, dtype=t.uint8).to_sparse(), alpha=-1)
t.add(t.ones(2).int().to_sparse(), t.ones(2).int().to_sparse(), alpha=0.5)
t.add(t.ones(2) > 0, (t.ones(2) > 0).to_sparse())
t.sub(t.ones(2) > 0, (t.ones(2) > 0).to_sparse())
t.sub(t.ones(2).to_sparse(), (t.ones(2) > 0).to_sparse())
(t.ones(2) > 0).to_sparse() - (t.ones(2) > 0)
t.ones(2).sub_((t.ones(2) > 0).to_sparse())
t.ones(2).mul_(t.tensor([0.0, 3]).to_sparse())
t.ones(2) / t.ones(2).to_sparse()
{TWICE}.item()
t.ones(2, 3).sparse_mask({TWICE}.to_sparse_csr())
t.ones_like({TWICE}.to_sparse_csr())
{TWICE}.to_sparse_csr().fill_(5)
{TWICE}.H
t.sparse.mm({TWICE}, {TWICE})
t.sparse.mm({TWICE}, t.ones(4, 2).to_sparse())
t.sparse_coo_tensor([[0]], [1.0], (-2,))
""".strip().splitlines()


@pytest.mark.parametrize("program", PROGRAMS)
def test_operators_beside_dense_tensors_and_into_others(program: str) -> None:
    def run(t: Any) -> Any:
        try:
            found = eval(program, {"t": t, "float": float})
        except Exception as error:
            return type(error).__name__
        dense = found.to_dense() if hasattr(found, "to_dense") else found
        return str(getattr(found, "layout", "")), str(dense)

    assert run(rushlight) == run(torch)
