"""Whatever a node saves, the gradients that are wanted depend on: nothing is kept for inputs that need none.

Every operator with gradients that a call of `tools/calls.py` uses runs with each subset of its inputs requiring grad.  Each saved array is then replaced by one
of other values: if no gradient changes, on arrays or on tensors, it was kept for nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from tools.calls import CALLS
from tools.replaying import cases

import rushlight as torch
from rushlight.basics import events
from rushlight.dispatch import call
from rushlight.engine.node import EVERY
from rushlight.engine.saved import SavedOutput
from rushlight.tensor import Tensor, wrap

# Saved although no formula computes with it, and why.
# By operator; and by call, where its values happen to make no difference to any gradient.
KEPT = {
    ("native_group_norm", "bias"): "the result is computed again from what is saved (see `rebuilt`)",
    ("native_batch_norm", "bias"): "the result is computed again from what is saved (see `rebuilt`)",
    ("native_layer_norm", "bias"): "the result is computed again from what is saved (see `rebuilt`)",
    ("native_layer_norm", "weight"): "as above",
    ("hardsigmoid", "out"): "where it is 0 or 1",
    ("angle", "input"): "of complex numbers",
    ("sgn", "input"): "of complex numbers",
    ("sgn", "out"): "of complex numbers",
    ("slogdet", "sign"): "of complex numbers",
    ("pow", "other"): "0 to the power of something over 0",
    ("xlogy", "input"): "where it is 0",
    ("xlog1py", "input"): "where it is 0",
    ("scaled_dot_product_attention", "value"): "of `value` alone: one kernel computes the three gradients",
    ("scaled_dot_product_attention", "out"): "as above",
    ("var", "out"): "of one element: NaN; a number by row",
    ("nansum", "input"): "where it is NaN",
    ("_thnn_fused_lstm_cell", "cx"): "of `cx` alone: one kernel computes all gradients",
    # One formula for several settings, of which some read less.
    ("cdist", "out"): "of other norms than the sum of distances",
    ("linalg_vector_norm", "out"): "of other norms than the sum of magnitudes",
    ("lu_solve", "pivots"): "where the adjoint is solved, or of B",
    ("scatter_reduce", "index"): "not of all reductions",
    ("scatter_reduce", "input"): "not of all reductions",
    ("scatter_reduce", "src"): "not of all reductions",
    ("scatter_reduce", "out"): "not of all reductions",
    "x.put(n, c.mT, accumulate=True)": "where it does not accumulate",
    "x.index_put((r % 2, r), w, accumulate=True)": "where it does not accumulate",
    # Numbers at which a gradient is 0, NaN or the same for all values.
    "F.alpha_dropout(x, 1.0, True)": "all are dropped",
    "F.dropout(x, 1.0)": "all are dropped",
    "T.floor_divide(x, v)": "it has no gradient",
    "T.heaviside(x, v)": "it has no gradient",
    "T.acosh(x)": "not a number below 1",
    "T.nextafter(x, v)": "where both are equal",
    "T.normal(x, s * 0)": "without spread",
    "s.max(0)": "of one element",
    "s.sort(0)": "of one element",
    "x.index_fill(1, r, 2.0)": "every place is filled",
    "x.index_fill(1, r, s)": "every place is filled",
}
# What the table of calls has not: numbers that are drawn, and inputs that are rarely given.
MORE = (
    "F.dropout(x)", "F.alpha_dropout(x, 0.5, True)", "T.acosh(x + 1)", "T.nextafter(x, x.masked_fill(t, 0))", "x.index_fill(1, r[:1], s)",
    "F.binary_cross_entropy_with_logits(x, y, z, pos_weight=v)", "F.linear_cross_entropy(a.mT, p, r, linear_bias=a[:, 0])",
    "T.nn.grad.conv2d_weight(h, (4, 4, 3, 3), h[..., :4, :4])", "x.__rtruediv__(y)",
    "T.native_dropout_backward(x, t, 2.0)",
    "[T.autograd.grad(u.cumprod(-1).sum(), u, create_graph=True) for u in [(x * t).requires_grad_()]]",  # with zeros
)  # fmt: skip


@dataclass
class Used:
    """An operator as a call used it: its inputs in one row, how they are grouped, and its statics."""

    op: Any
    flat: list[Any]
    grouped: list[int | None]  # by argument, how many tensors it is a sequence of
    statics: tuple[Any, ...]

    def run(self, chosen: tuple[int, ...]) -> tuple[Any, ...]:
        """Its results with the inputs at these positions requiring grad, on tensors of its own."""
        flat = [wrap(x._array.copy()) if isinstance(x, Tensor) else x for x in self.flat]
        for i in chosen:
            flat[i].requires_grad_()
        row = iter(flat)
        inputs = tuple(next(row) if n is None else tuple(itertools.islice(row, n)) for n in self.grouped)
        out = call.apply(self.op, inputs, self.statics)
        return out if isinstance(out, tuple) else (out,)

    def able(self) -> list[int]:
        """The positions of the inputs that can have gradients."""
        op = self.op
        return [i for i, x in enumerate(self.flat) if isinstance(x, Tensor) and x._array.dtype.kind == "f"
                and (i in op.targets or (op.sequence is not None and i >= op.sequence))]  # fmt: skip


class Uses:
    """An observer that notes which operators are used, on what."""

    passive = False

    def __init__(self) -> None:
        self.found: list[Used] = []

    def begin(self, kind: int, what: Any, inputs: Any, statics: Any) -> None:
        """Copies are made before, for a change in place would be in them afterwards."""
        if kind not in (events.OPERATOR, events.INPLACE) or not what.formulas:
            return
        grouped = [len(x) if isinstance(x, (tuple, list)) else None for x in inputs]
        flat = [x for part in inputs for x in (part if isinstance(part, (tuple, list)) else (part,))]
        flat = [wrap(x._array.copy()) if isinstance(x, Tensor) else x for x in flat]
        self.found.append(Used(what, flat, grouped, tuple(statics)))

    def end(self, kind: int, what: Any, inputs: Any, statics: Any, token: Any, result: Any) -> None:
        """Nothing is looked at afterwards."""


def uses(text: str) -> list[Used]:
    """The operators with gradients that a call of `tools/calls.py` uses."""
    case, watch = cases.called(text, "float64"), Uses()
    with events.Observation(watch):
        case.run(*case.tensors())
    return watch.found


def other(array: Any) -> Any:
    """An array of other values that are as valid."""
    if array.dtype == bool:
        return ~array
    if array.dtype.kind in "iu":
        bits = array.dtype == np.uint8 and array.ndim == 1
        return ~array if bits else ((array + 1) % max(int(array.max()) + 1, 3)).astype(array.dtype)
    return (0.9 - array * 0.37) * np.linspace(0.5, 1.1, array.size).reshape(array.shape) - 3 * (array >= array.mean())


def slots(node: Any) -> Iterator[tuple[str, Any, Callable[[], None]]]:
    """Each array that a node saved: its name, and how to change it."""
    op = node.plan.op
    for i, item in enumerate(node.saved or ()):
        if isinstance(item, Tensor):

            def change(i: int = i, item: Tensor = item) -> None:
                node.saved = [wrap(other(item._array)) if j == i else s for j, s in enumerate(node.saved)]

            yield op.input_name(i), item, change
    for k, item in enumerate(node.outs or ()):
        if item is not None:

            def change_out(k: int = k, item: Any = item) -> None:
                node.outs = [SavedOutput(wrap(other(item.array)), k) if j == k else s for j, s in enumerate(node.outs)]

            yield op.out_names[k], item, change_out
    for k, item in enumerate(node.aux or ()):
        if isinstance(item, np.ndarray):

            def change_aux(k: int = k, item: Any = item) -> None:
                node.aux = tuple(other(item) if j == k else s for j, s in enumerate(node.aux))

            yield op.aux[k], item, change_aux


def gradients(node: Any, g: Any) -> list[Any]:
    """What the node computes, on arrays and on tensors; an error is a value too."""
    found: list[Any] = []
    for on_tensors in (False, True):
        grads = [wrap(x) for x in g] if on_tensors else list(g)
        try:
            with np.errstate(all="ignore"):
                run = node.run_tensors if on_tensors else node.run
                made = run(grads if node.count > 1 else grads[0], EVERY)
        except Exception as error:
            made = [type(error).__name__]
        found += [x._array if isinstance(x, Tensor) else x if isinstance(x, str) else None if x is None else np.asarray(x)
                  for x in made]  # fmt: skip
    return found


def differ(a: Any, b: Any) -> bool:
    if isinstance(a, str) or isinstance(b, str) or a is None or b is None:
        return a is not b if a is None or b is None else not (isinstance(a, str) and isinstance(b, str) and a == b)
    return a.shape != b.shape or not np.array_equal(a, b, equal_nan=True)


def unneeded(use: Used, chosen: tuple[int, ...]) -> list[str]:
    """What a node saves for nothing where the inputs at these positions require grad."""
    outs = use.run(chosen)
    node: Any = next((t._edge.node for t in outs if t._edge is not None), None)
    if node is None:
        return []
    g = [np.random.default_rng(k).uniform(0.5, 1, t.shape).astype(t._array.dtype) for k, t in enumerate(outs)]
    before, useless = gradients(node, g), []
    if any(isinstance(x, str) and x == "NotImplementedError" for x in before):
        return []
    assert not any(isinstance(x, str) for x in before), before
    for what, _, change in list(slots(node)):
        kept = node.saved, node.outs, node.aux
        change()
        if not any(differ(a, b) for a, b in zip(before, gradients(node, g), strict=False)):
            useless.append(what)
        node.saved = kept[0]
        if kept[1] is not None:
            node.outs = kept[1]
        if kept[2] is not None:
            node.aux = kept[2]
    return [what for what in useless if (use.op.name, what) not in KEPT]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("text", [*(each for each in CALLS if each not in KEPT), *MORE])
def test_everything_saved_is_used(text: str) -> None:
    for use in uses(text):
        able = use.able()
        for count in range(1, len(able) + 1):
            for chosen in itertools.combinations(able, count):
                names = [use.op.input_name(i) for i in chosen]
                assert not (found := unneeded(use, chosen)), f"{use.op.name} with {names} requiring grad keeps {found}"


def saved_bytes(loss: Tensor, model: Any) -> int:
    """Bytes that the nodes of a graph hold, without those of the model."""
    from rushlight.memory.counting.holders import saved_arrays
    from rushlight.storage import root_of

    found: dict[int, int] = {}
    stack, seen = [loss.grad_fn], set()
    while stack:
        node = stack.pop()
        if id(node) not in seen:
            seen.add(id(node))
            found |= {id(root_of(a)): root_of(a).nbytes for a in saved_arrays(node)}
            stack += [n for edge in node.edges if (n := getattr(edge, "node", None)) is not None]
    kept = {id(root_of(t._array)) for t in (*model.parameters(), *model.buffers())}
    return sum(n for key, n in found.items() if key not in kept)


def test_frozen_layers_keep_nothing() -> None:
    x = torch.randn(4, 8, 16, 16, requires_grad=True)
    layers = [torch.nn.Conv2d(8, 8, 3), torch.nn.BatchNorm2d(8).eval(), torch.nn.Flatten(), torch.nn.Linear(8 * 196, 5)]
    model = torch.nn.Sequential(*layers).requires_grad_(False)
    assert saved_bytes(model(x).sum(), model) == 0


def convolutional(lib: Any) -> tuple[Any, Any]:
    nn = lib.nn
    layers = [nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3), nn.SiLU(),
              nn.Flatten(), nn.Dropout(0.5), nn.Linear(16 * 25, 10)]  # fmt: skip
    return nn.Sequential(*layers), lib.zeros(4, 3, 16, 16)


def attentive(lib: Any) -> tuple[Any, Any]:
    return lib.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, activation="gelu"), lib.zeros(4, 20, 32)


@pytest.mark.parametrize("build", [convolutional, attentive])
@pytest.mark.parametrize("trained", ["all", "last"])
def test_at_most_what_pytorch_saves(build: Any, trained: str) -> None:
    reference = pytest.importorskip("torch")
    models = [build(lib) for lib in (torch, reference)]
    for model, _ in models:
        last = list(model.parameters())[-1]
        for p in model.parameters():
            p.requires_grad_(trained == "all" or p is last)
    (model, x), (twin, y) = models
    found: dict[int, Any] = {}

    def pack(t: Any) -> Any:
        found[t.untyped_storage().data_ptr()] = t.untyped_storage()
        return t

    with reference.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        loss = twin(y).sum()
    kept = {p.untyped_storage().data_ptr() for p in (*twin.parameters(), *twin.buffers())}
    theirs = sum(s.nbytes() for key, s in found.items() if key not in kept)
    del loss
    ours = saved_bytes(model(x).sum(), model)
    assert ours <= theirs, (ours, theirs)
