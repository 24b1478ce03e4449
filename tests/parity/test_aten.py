"""What PyTorch's functions call below themselves, forward and backward, called here under the same names with equal arguments."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest
from tools.calls import CALLS
from tools.replaying.cases import variables

import rushlight

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]

from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

SPACE = {"T": torch, "F": torch.nn.functional, "L": torch.linalg, "S": torch.special, "X": torch.fft}

# Results that hold what is random, or what no one has written.
UNWRITTEN = ("empty", "bernoulli", "uniform", "random", "normal", "exponential", "rrelu", "dropout")
# Choices of signs and orders, and factors by which determinants are found: of A there, of its transpose here.
FREE = {
    "linalg_eig",
    "linalg_qr",
    "_linalg_det",
    "_linalg_slogdet",
    "linalg_lstsq",
    "linalg_householder_product",
    "geqrf",
}
# Known by name alone: they give what their gradients need in a form that nothing here has.
BY_NAME = {
    "_ctc_loss", "_ctc_loss_backward", "_embedding_bag", "_embedding_bag_backward", "fake_quantize_per_tensor_affine_cachemask",
    "fake_quantize_per_channel_affine_cachemask", "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams",
}  # fmt: skip


class Recording(TorchDispatchMode):
    """Every call with its arguments before and after, and its results."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Any] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        before = plain(list(args)), {k: plain(v) for k, v in (kwargs or {}).items()}
        out = func(*args, **(kwargs or {}))
        self.calls.append((str(func), *before, plain(out), plain(list(args)) if func._schema.is_mutable else []))
        return out


def plain(x: Any) -> Any:
    """Tensors as arrays; what PyTorch's constants are called."""
    if isinstance(x, torch.Tensor):
        return x.detach().resolve_conj().resolve_neg().numpy().copy()
    if isinstance(x, (torch.dtype, torch.device, torch.layout, torch.memory_format)):
        return Word(str(x))
    return [plain(item) for item in x] if isinstance(x, (list, tuple)) else x


class Word(str):
    """The name of a constant."""


def ours(x: Any) -> Any:
    """What `plain` gave, as arguments here."""
    if isinstance(x, np.ndarray):
        return rushlight.tensor(x)
    if isinstance(x, Word):
        return rushlight.device(x) if x == "cpu" else getattr(rushlight, x.removeprefix("torch."))
    return [ours(item) for item in x] if isinstance(x, list) else x


def leaves(x: Any) -> list[Any]:
    """What lists hold."""
    return [leaf for item in x for leaf in leaves(item)] if isinstance(x, (list, tuple)) else [x]


def recorded(call: str) -> list[Any]:
    """The calls below one call, and below its backward."""
    torch.manual_seed(0)
    names = {name: torch.from_numpy(np.array(array)) for name, array in variables(call).items()}
    for grads in (True, False):  # some are not differentiable with respect to an argument
        given = {n: x.clone().requires_grad_(grads and x.is_floating_point()) for n, x in names.items()}
        with Recording() as recording, contextlib.suppress(RuntimeError):
            made = eval(call, {**SPACE, **given})
            roots = [x for x in leaves(made) if isinstance(x, torch.Tensor) and x.requires_grad and not x.is_complex()]
            torch.autograd.backward([x.sum() for x in roots])
            return recording.calls
    return recording.calls


def check(name: str, args: Any, kwargs: Any, expected: Any, after: Any) -> None:
    """Call it here, and compare."""
    _, base, overload = name.split(".")
    function = getattr(getattr(rushlight.ops.aten, base), overload)
    given = ours(args)
    if base in BY_NAME:
        with pytest.raises(NotImplementedError, match="by name alone"):
            function(*given, **{k: ours(v) for k, v in kwargs.items()})
        return
    got = function(*given, **{k: ours(v) for k, v in kwargs.items()})
    found, wanted = leaves(got), leaves(expected)
    if after:
        found, wanted = found + leaves(given), wanted + leaves(after)
    assert len(found) == len(wanted), name
    for mine, theirs in zip(found, wanted, strict=True):
        if not isinstance(theirs, np.ndarray):
            assert not isinstance(mine, rushlight.Tensor), name
            continue
        mine = mine.detach().resolve_conj().resolve_neg().numpy()
        assert (mine.shape, mine.dtype) == (theirs.shape, theirs.dtype), name
        if not (base in FREE or any(word in base for word in UNWRITTEN)):
            np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-8, err_msg=name)


@pytest.mark.parametrize("call", CALLS)
def test_what_a_call_runs_below_itself_is_there_and_gives_the_same(call: str) -> None:
    for each in recorded(call):
        check(*each)


def test_operators_of_lists() -> None:
    names = [name for name in dir(torch) if name.startswith("_foreach_")]
    overloads = [[{each for each in getattr(t.ops.aten, name).overloads() if not each.endswith("out")} for name in names]
                 for t in (torch, rushlight)]  # fmt: skip
    assert overloads[0] == overloads[1]
    sums = [t.ops.aten._foreach_add.List([t.ones(2)], [t.ones(2)], alpha=2)[0] for t in (torch, rushlight)]
    assert sums[0].tolist() == sums[1].tolist()
    assert rushlight.ops.aten.add.overloads() == ["Tensor"]
