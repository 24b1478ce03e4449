"""What programs of earlier years ask of PyTorch, and what dense tensors say of the parts of sparse ones."""

import importlib
from collections.abc import Callable
from typing import Any

import pytest

import rushlight

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]


def backward_twice(t: Any, size: tuple[int, ...]) -> Any:
    d = len(size) - 2
    theta = t.eye(d, d + 1, dtype=t.float64)[None].requires_grad_()
    grid = t.nn.functional.affine_grid(theta, size, align_corners=False)
    grid.pow(2).sum().backward(retain_graph=True)
    loss = grid.sum()
    loss.backward()
    loss.backward()
    return [round(x, 9) + 0.0 for x in theta.grad.flatten().tolist()], type(grid.grad_fn).__name__


def autocast_of_cpu(t: Any) -> Any:
    with t.cpu.amp.autocast():
        return (
            str((t.ones(2, 2) @ t.ones(2, 2)).dtype),
            str(t.get_autocast_dtype("cpu")),
            t.cpu.amp.GradScaler().is_enabled(),
        )


def batch_of_products(t: Any) -> Any:
    dense = t.arange(24, dtype=t.float64).reshape(2, 3, 4)
    a = (dense % 3).to_sparse().requires_grad_()
    b = (t.arange(40, dtype=t.float64).reshape(2, 4, 5) / 7).requires_grad_()
    out = t.bmm(a, b)
    (out * out).sum().backward()
    return [x.flatten().tolist() for x in (out, b.grad, a.grad.to_dense() * (dense % 3 != 0))]


ASKED: dict[str, Callable[[Any], Any]] = {
    "affine_grid": lambda t: backward_twice(t, (1, 1, 3, 4)),
    "affine_grid of volumes": lambda t: backward_twice(t, (1, 1, 2, 3, 4)),
    "affine_grid of nothing": lambda t: t.nn.functional.affine_grid(t.eye(2, 3)[None], (1, 1, 0, 3), align_corners=False),
    "data in vmap": lambda t: t.vmap(lambda x: x.data * 2)(t.ones(3)),
    "data set in vmap": lambda t: t.vmap(lambda x: setattr(x, "data", t.ones(())))(t.ones(3)),
    **{f"torch.{name}": (lambda t, name=name: getattr(t, name)(t.eye(2), *([t.eye(2)] if name in ("lstsq", "solve") else [])))
       for name in ("symeig", "eig", "lstsq", "solve", "matrix_rank")},
    **{f"Tensor.{name}": (lambda t, name=name: getattr(t.eye(2), name)(*([t.eye(2)] if name in ("lstsq", "solve") else [])))
       for name in ("symeig", "eig", "lstsq", "solve")},
    **{name: (lambda t, name=name: getattr(t.ones(2, 3), name)())
       for name in ("_indices", "_values", "_nnz", "_dimI", "_dimV", "sparse_dim", "dense_dim")},
    "smm": lambda t: t.eye(2).to_sparse().smm(t.ones(2, 2)).to_dense().tolist(),
    "sspaddmm": lambda t: t.eye(2).to_sparse().sspaddmm(t.eye(2).to_sparse(), t.ones(2, 2), beta=2).to_dense().tolist(),
    "bmm of a sparse batch": batch_of_products,
    "kinds of tensors": lambda t: (t.ones(1).is_xla, t.ones(1).is_mtia, t.ones(1).is_maia),
    "torch.cpu.amp": autocast_of_cpu,
}  # fmt: skip


@pytest.mark.parametrize("name", ASKED)
def test_older_names(name: str) -> None:
    importlib.import_module("torch.cpu.amp")

    def run(t: Any) -> Any:
        try:
            return ASKED[name](t)
        except Exception as error:
            return type(error), str(error)[:50]

    found, want = run(rushlight), run(torch)
    for a, b in zip(found, want, strict=True) if name.startswith("bmm") else [(found, want)]:
        assert a == (pytest.approx(b) if name.startswith("bmm") else b)
