"""Nested tensors in both layouts: values, structure, gradients and refusals are PyTorch's."""

from __future__ import annotations

import copy
import io
import pickle
import re
from typing import Any

import numpy as np
import pytest

import rushlight

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]

# Of `nt`, components (2, 4), (5, 4), (3, 4); `four`, (2, 2, 4), (5, 2, 4), (3, 2, 4); `one`, (2,), (5,), (3,); `ids`, the same of integers;
# `m`, bool, in the places of `nt`; `n`, other numbers there.  `w`, `b`, `v`: dense (6, 4), (6,), (4,).
BOTH = """
nt.relu() | t.sin(nt) | t.cos(nt) | -nt | nt.abs() | nt.tanh() | F.gelu(nt) | F.silu(nt) | t.sgn(nt) | nt.isnan() | nt.logical_not()
nt + n | nt - n | nt * n | nt / (n.abs() + 1) | nt + 1 | 1 + nt | nt * 2.5 | nt / 4 | nt > 0 | nt >= 0 | nt == 0 | t.add(nt, n, alpha=2)
nt * t.tensor(2.0) | nt.masked_fill(m, 0.5) | nt.double() | nt.half() | nt.to(t.float64) | nt.to(dtype=t.int64) | nt.type_as(ids) | nt.bool()
nt.clone() | nt.detach() | nt.contiguous() | nt.requires_grad_() | nt.cpu() | t.zeros_like(nt) | t.ones_like(nt) | F.dropout(nt, 0.0)
F.dropout(nt, 0.5, False) | F.linear(nt, w) | F.linear(nt, w, b) | F.softmax(nt, -1) | F.softmax(nt, 1) | nt.softmax(2) | four.softmax(2)
F.layer_norm(nt, (4,), v, v) | nt.transpose(1, 2) | four.transpose(1, 2) | four.transpose(2, 3) | four.transpose(1, 3) | nt.mT
nt.transpose(1, 2).transpose(1, 2) | four.transpose(1, 2).contiguous() | nt.unsqueeze(-1) | nt.unsqueeze(1) | nt.unsqueeze(2)
nt.unsqueeze(-1).squeeze(-1) | nt.squeeze(-1) | nt.view(3, -1, 2, 2) | nt.reshape(3, -1, 2, 2) | four.reshape(3, -1, 8) | four.view(3, -1, 8)
nt.chunk(2, -1)[1] | nt.split([1, 3], -1)[1] | nt.select(0, 1) | nt.select(2, 1) | nt[0] | nt[-1] | nt[1, 2] | nt[..., 0] | nt.unbind()[1]
nt.to_padded_tensor(0.5) | nt.to_padded_tensor(0.0, (3, 7, 4)) | one.to_padded_tensor(-1.0) | four.transpose(1, 2).to_padded_tensor(0.0)
t.nested.to_padded_tensor(nt, 1.0) | F.embedding(ids, w) | t.bmm(nt, t.ones(3, 4, 2)) | nt.transpose(1, 2) @ n | four @ v[:, None]
F.scaled_dot_product_attention(four, four, four) | nt.dim() | nt.size(0) | nt.size(2) | nt.size(-1) | nt.numel() | nt.is_nested | nt.is_contiguous()
nt.transpose(1, 2).is_contiguous() | nt.dtype | nt.device | nt.layout | nt.element_size() | nt.nbytes | nt.is_same_size(n) | nt.is_leaf | [x.shape for x in nt]
nt.values() | nt.values().shape | t.is_tensor(nt) | nt.is_floating_point() | nt.ndim | t.nested.as_nested_tensor(nt) is nt | nt.sum(-1, keepdim=True)
nt[5] | t.stack([nt, n], 1) | nt[:, 0] | nt[0:2] | nt.unbind(1) | nt.softmax(0) | nt.transpose(0, 2) | nt.unsqueeze(0) | nt.numpy() | nt.item() | bool(nt) | float(nt)
nt + other | nt.sum(0) | nt.unflatten(1, (2, 2)) | F.pad(nt, (0, 1)) | nt.var(2) | nt.cumsum(1) | t.flip(nt, [2]) | t.roll(nt, 1) | nt.topk(2)
nt.view_as(other) | t.stack([nt, other]) | nt.chunk(2, 1) | nt.norm() | nt.logsumexp(2) | F.normalize(nt, dim=-1) | F.hardswish(nt)
nt.gather(2, ids) | nt.index_select(2, ids[0]) | nt.repeat(1, 1, 2) | nt.T.sum() | w[ids] | nt.narrow(1, 0, 1) | nt.split(2, 0)
"""
JAGGED = """
nt.exp() | nt.sigmoid() | nt.sqrt() | nt ** 2 | nt.pow(3) | nt.clamp(0, 1) | nt.floor() | 1 - nt | 2 / nt | t.isfinite(nt) | nt % 2 | nt != n | m & m | ~m
m.logical_and(m) | t.where(m, nt, n) | t.where(m, nt, 0.0) | t.maximum(nt, n) | t.lerp(nt, n, 0.5) | F.leaky_relu(nt) | F.elu(nt) | F.softplus(nt)
F.mish(nt) | F.threshold(nt, 0.0, 0.0) | nt + v | v + nt | nt * v | v - nt | nt * t.ones(1, 4) | nt + t.ones(1, 1, 4) | nt + t.arange(12.0).reshape(3, 1, 4)
t.arange(3.0).reshape(3, 1, 1) * nt | nt * t.arange(60.0).reshape(3, 5, 4) | t.arange(12.0).reshape(3, 1, 4) - nt | four * t.ones(2, 1) | t.full_like(nt, 2.0)
nt + t.ones(2, 4) | nt + t.ones(5) | nt * t.ones(3, 2, 4) | nt + one | F.layer_norm(nt, (4,)) | F.layer_norm(four, (2, 4)) | F.rms_norm(nt, (4,)) | F.log_softmax(nt, -1)
F.log_softmax(nt, 1) | nt.sum() | nt.sum(1) | nt.sum(2) | nt.sum(-1) | nt.sum(1, keepdim=True) | nt.sum((0, 1)) | nt.sum((0, 1, 2)) | nt.sum((0, 2)) | nt.sum((1, 2))
four.sum(1) | four.sum(2) | four.sum((2, 3)) | four.transpose(1, 2).sum(1) | four.transpose(1, 2).sum(2) | one.sum(1) | nt.mean() | nt.mean(1) | nt.mean(2) | nt.mean(0)
nt.mean(-1, keepdim=True) | nt.mean((1, 2)) | nt.amax(1) | nt.amax(2) | nt.amin(1) | nt.max(1).values | nt.max(2).values | nt.max(1).indices | nt.max() | nt.argmax(1)
nt.argmax(2) | nt.prod() | nt.prod(2) | m.any() | m.all() | m.any(1) | m.all(2) | t.cat([nt, n], 2) | t.cat([nt, n], -1) | t.cat([nt, n], 1) | t.cat([nt, other], -1)
t.stack([nt, n], 2) | t.stack([nt, n], -1) | nt @ w.t() | nt @ t.arange(24.0).reshape(3, 4, 2) | t.matmul(four, w.t()) | nt @ v | nt @ n.transpose(1, 2)
F.scaled_dot_product_attention(four.transpose(1, 2), four.transpose(1, 2) * 2, four.transpose(1, 2) - 1) | F.scaled_dot_product_attention(nt, nt, nt)
four.permute(0, 2, 1, 3) | four.permute(0, 2, 3, 1) | four.permute(1, 0, 2, 3) | nt.unflatten(-1, (2, 2)) | nt.unflatten(-1, [2, -1]) | four.flatten(2, 3) | four.flatten(-2)
four.flatten(1, 2) | four.flatten() | four.transpose(1, 2).flatten(1, 2) | nt.view(3, nt.size(1), 2, 2) | nt.view(-1, -1, 2, 2) | nt.reshape(*nt.shape[:2], 2, 2)
nt.view_as(n) | nt.chunk(2, 0)[0] | nt.split(3, -1)[1] | nt.narrow(2, 0, 2) | nt.expand_as(n) | nt.unsqueeze(-1).expand(3, nt.size(1), 4, 3) | F.one_hot(ids, 9)
nt.shape | nt.size() | nt.size(1) == n.size(1) | nt.size(1) == other.size(1) | nt.size(1) == 5 | nt.size(1) >= 2 | nt.size(1) > 7 | nt.size(1) * 2 == 2 * n.size(1)
nt.stride() | four.transpose(1, 2).stride() | nt.offsets() | nt.lengths() | nt._max_seqlen | nt._min_seqlen | len(nt) | nt.shape == n.shape | nt.shape[:2] == other.shape[:2]
t.nested.nested_tensor_from_jagged(nt.values() * 2, nt.offsets()) + nt | nt[..., 1:3] | nt.tolist()
holes * 2 | holes.contiguous() | holes.unbind()[1] | holes.lengths() | holes.offsets() | holes.values() | holes.is_contiguous() | holes.sum(1) | holes.to_padded_tensor(0.0)
holes.sum(2) | t.nested.narrow(t.arange(30.0).reshape(3, 5, 2), 1, 0, t.tensor([2, 3, 1]), layout=t.jagged) | nt.copy_(other)
t.nested.masked_select(t.arange(9.0).reshape(3, 3), t.tensor([[1, 0, 0], [0, 0, 0], [1, 1, 1]]).bool()) | t.nested.nested_tensor_from_jagged(t.ones(10, 4))
t.nested.nested_tensor_from_jagged(t.ones(4, 10), t.tensor([0, 2, 7, 10]), jagged_dim=2) | t.nested.nested_tensor_from_jagged(t.ones(10, 4), None, t.tensor([2, 5, 3]))
t.nested.nested_tensor_from_jagged(t.ones(10, 4), t.tensor([0, 2, 7, 10]), jagged_dim=0) | nt.to_padded_tensor(0.0, (3, 4, 4)) | nt.transpose(0, 1)
"""
STRIDED = """
nt.size(1) | nt.shape | nt.size() | nt.stride() | nt.exp() | nt ** 2 | 1 - nt | nt + v | nt * t.ones(3, 1, 4) | nt @ w.t() | nt @ n.transpose(1, 2) | F.layer_norm(nt, (4,))
t.bmm(nt, n.transpose(1, 2)) | nt.sum() | nt.sum(2) | nt.mean(2) | t.nested.nested_tensor([]) | t.nested.nested_tensor([1, 2, 3]) | two | two * 2 | two.to_padded_tensor(0.0)
two.transpose(1, 2) | two.softmax(-1) | two @ two.transpose(1, 2) | nt.narrow(0, 0, 2) | nt.narrow(2, 0, 2) | nt.select(1, 0) | nt._nested_tensor_size() | m.all(2) | m.all()
nt._nested_tensor_strides() | nt._nested_tensor_storage_offsets() | nt == n | nt > n | t.where(m, nt, 0.0) | nt.to_padded_tensor(0.0, (3, 4, 4)) | nt.is_same_size(other)
F.scaled_dot_product_attention(nt, n, nt) | t.nested.nested_tensor([t.ones(2, 3), t.ones(2)]) | t.nested.nested_tensor(t.ones(2, 3)) | t.nested.nested_tensor(3)
t._nested_tensor_from_mask(t.ones(2, 3, 4), t.tensor([[1, 1, 0], [1, 1, 1]]).bool()) | t._nested_tensor_from_mask(t.ones(2, 3, 4), t.tensor([[1, 0, 1], [1, 1, 1]]).bool())
t._nested_tensor_from_mask_left_aligned(t.ones(2, 3, 4), t.tensor([[1, 1, 0], [1, 1, 1]]).bool()) | t._nested_tensor_from_mask_left_aligned(t.ones(2, 3, 4), t.tensor([[1, 0, 1], [1, 1, 1]]).bool())
t._nested_from_padded(t.arange(12.0).reshape(2, 3, 2), t.tensor([[2, 2], [3, 1]])) | t._nested_from_padded(t.arange(48.0).reshape(2, 2, 3, 4), t.tensor([[2, 8], [3, 8]]), True)
t._nested_from_padded(t.arange(12.0).reshape(2, 3, 2), t.tensor([[4, 2], [3, 1]]))
t.nested.narrow(t.arange(30.0).reshape(3, 5, 2), 1, 1, 2) | t.nested.narrow(t.ones(3, 5, 2), 1, 0, t.tensor([2, 3, 1])) | nt.view(-1, -1, 2, 2) | nt.offsets() | nt.nothing
"""
CASES = [("jagged", e.strip()) for e in (BOTH + JAGGED).replace("\n", "|").split("|") if e.strip()]
CASES += [("strided", e.strip()) for e in (BOTH + STRIDED).replace("\n", "|").split("|") if e.strip()]
LENGTHS = (2, 5, 3)


def numbers(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def scene(t: Any, layout: str) -> tuple[dict[str, Any], list[Any]]:
    """What expressions name, and the leaves that gradients flow to."""
    kind = getattr(t, layout)
    leaves = [t.tensor(numbers(n, 4), requires_grad=True) for n in LENGTHS]
    nested = t.nested.as_nested_tensor
    nt = nested(leaves, layout=kind)
    four = nested([t.tensor(numbers(n, 2, 4)) for n in LENGTHS], layout=kind)
    names = {"nt": nt, "four": four, "t": t, "F": t.nn.functional, "n": (nt.detach() * 2 + 1), "w": t.tensor(numbers(6, 4)), "b": t.tensor(numbers(6)),
             "v": t.tensor(numbers(4)), "one": nested([t.tensor(numbers(n)) for n in LENGTHS], layout=kind), "m": nt.detach() > 0,
             "ids": nested([t.tensor([i % 6 for i in range(n)]) for n in LENGTHS], layout=kind),
             "other": nested([t.tensor(numbers(n, 4)) for n in (1, 5, 3)], layout=kind)}  # fmt: skip
    if layout == "jagged":
        names["holes"] = t.nested.narrow(
            t.tensor(numbers(3, 5, 2)), 1, t.tensor([0, 1, 2]), t.tensor([2, 3, 1]), layout=kind
        )
    else:
        names["two"] = nested([t.tensor(numbers(2, 3)), t.tensor(numbers(4, 5))], layout=kind)
    return names, leaves


def told(value: Any, leaves: list[Any]) -> Any:
    """A value in words and numbers, with gradients where it has some."""
    if not hasattr(value, "is_nested"):
        return str(value).replace("rushlight", "torch")
    parts = list(value.unbind()) if value.is_nested else [value]
    found: list[Any] = [value.is_nested, str(value.dtype), str(value.layout), getattr(value, "_ragged_idx", None)]
    found += [p.detach().numpy().astype(np.float64) for p in parts]
    if value.requires_grad and value.grad_fn is not None and parts[0].is_floating_point():
        found += gradients(parts, leaves)
    return found


def gradients(parts: list[Any], leaves: list[Any]) -> list[Any]:
    """The gradients of all elements, each with another weight.  None where PyTorch has not got them right: it raises."""
    weights = [np.arange(1, 1 + p.numel(), dtype=np.float32).reshape(tuple(p.shape)) for p in parts]
    total = sum((p.float() * p.new_tensor(w.tolist()).float()).sum() for p, w in zip(parts, weights, strict=True))
    try:
        total.backward()
    except Exception:
        if not isinstance(total, torch.Tensor):
            raise
        return [None for _ in leaves]
    return [np.zeros(tuple(x.shape)) if x.grad is None else x.grad.numpy() for x in leaves]


def outcome(t: Any, layout: str, expression: str) -> Any:
    names, leaves = scene(t, layout)
    try:
        value = eval(expression, names)
    except Exception as error:
        return error
    if t is torch and layout == "jagged" and (".split(" in expression or expression == "F.softmax(nt, 1)"):
        value = value.detach()  # its gradients end the process, and are not those of each component
    return told(value, leaves)


@pytest.mark.parametrize(("layout", "expression"), CASES)
def test_values_structure_gradients_and_refusals(layout: str, expression: str) -> None:
    ours, theirs = outcome(rushlight, layout, expression), outcome(torch, layout, expression)
    if isinstance(theirs, Exception):  # NotImplementedError is a RuntimeError
        assert isinstance(ours, type(theirs)) or isinstance(theirs, type(ours)), (ours, theirs)
    elif isinstance(theirs, list):
        assert not isinstance(ours, Exception), ours
        assert ours[:4] == theirs[:4] and len(ours) >= len(theirs)
        for a, b in zip(ours[4:], theirs[4:], strict=False):
            if b is None:
                continue
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)
    else:
        strip = [re.sub(r"\bj\d+", "j", x) if isinstance(x, str) else x for x in (ours, theirs)]
        assert strip[0] == strip[1]


@pytest.mark.parametrize("layout", ["jagged", "strided"])
def test_a_leaf_has_a_nested_gradient(layout: str) -> None:
    found = []
    for t in (rushlight, torch):
        nt = t.nested.nested_tensor(
            [t.tensor(numbers(n, 4)) for n in LENGTHS], layout=getattr(t, layout), requires_grad=True
        )
        (grad,) = t.autograd.grad((nt * nt).unbind()[1].sum(), nt)
        y = nt * 3
        y.backward(nt.detach())
        found.append(
            [
                nt.is_leaf,
                nt.requires_grad,
                y.is_leaf,
                nt.grad.is_nested,
                *(x.tolist() for x in (*grad.unbind(), *nt.grad.unbind())),
            ]
        )
        with pytest.raises(RuntimeError):
            (nt * 2).backward()
    assert found[0] == found[1]


@pytest.mark.parametrize("layout", ["jagged", "strided"])
def test_text_copies_and_pickles(layout: str) -> None:
    found = []
    for t in (rushlight, torch):
        nt = t.nested.nested_tensor([t.tensor(numbers(n, 4)) for n in LENGTHS], layout=getattr(t, layout))
        again = pickle.loads(pickle.dumps(nt))
        leaf = nt.detach().requires_grad_()
        leaf = copy.deepcopy(leaf) if layout == "jagged" else leaf
        texts = [repr(x) for x in (nt, again, leaf, nt.bool())]
        found.append([re.sub(r"\bj\d+", "j", text) for text in texts] + [x.tolist() for x in leaf.unbind()])
    assert found[0] == found[1]


@pytest.mark.parametrize("layout", ["jagged", "strided"])
def test_changes_in_place_reach_components_and_values(layout: str) -> None:
    for t in (rushlight, torch):
        nt = t.nested.nested_tensor([[1.0, 2.0], [3.0]], layout=getattr(t, layout))
        assert nt.add_(1) is nt and nt.values().tolist() == [2, 3, 4]
        nt.unbind()[1].zero_()
        nt *= 2
        assert nt.values().tolist() == [4, 6, 0] and nt.zero_().values().tolist() == [0, 0, 0]
        assert nt.fill_(2.0).copy_(nt * 3).values().tolist() == [6, 6, 6]


MAKERS = ["t.nested.nested_tensor([[1.0, 2.0], [3.0]], layout=k)", "t.nested.nested_tensor([t.ones(2, 3), t.ones(2, 4)], layout=k)",
          "t.nested.nested_tensor([t.ones(2, 3), t.ones(3, 4)], layout=k)", "t.nested.nested_tensor([t.ones(2), 3], layout=k)",
          "t.nested.nested_tensor([1, 2], layout=k)", "t.nested.nested_tensor([], layout=k)", "t.nested.nested_tensor(3, layout=k)",
          "t.nested.nested_tensor([t.ones(2)], layout=t.sparse_coo)", "t.nested.as_nested_tensor(t.arange(6.0).reshape(2, 3), layout=k)",
          "t.nested.as_nested_tensor(t.arange(12.0).reshape(2, 3, 2), layout=k)", "t.nested.as_nested_tensor(t.ones(2), layout=k)",
          "t.nested.nested_tensor([[1, 2], [3]], dtype=t.float64, layout=k)", "t.nested.as_nested_tensor([t.ones(2), t.ones(1)], dtype=t.float64, layout=k)",
          "t.nested.as_nested_tensor(t.nested.nested_tensor([[1.0]], layout=k), layout=t.jagged)", "t.nested.nested_tensor([[1.0]], layout=k, requires_grad=True)",
          "t.nested.nested_tensor([t.ones(2), t.ones(3).long()], layout=k)"]  # fmt: skip


@pytest.mark.parametrize("layout", ["jagged", "strided"])
@pytest.mark.parametrize("expression", MAKERS)
def test_what_nested_tensors_are_made_of(layout: str, expression: str) -> None:
    found: list[Any] = []
    for t in (rushlight, torch):
        try:
            nt = eval(expression, {"t": t, "k": getattr(t, layout)})
            found.append(
                [str(nt.layout), str(nt.dtype), nt.requires_grad, *((tuple(x.shape), x.tolist()) for x in nt.unbind())]
            )
        except Exception as error:
            found.append(type(error))
    assert found[0] == found[1]


def same_weights(build: Any) -> list[Any]:
    """A module of both packages with the same numbers, in evaluation."""
    ours, theirs = build(rushlight), build(torch)
    ours.load_state_dict({name: rushlight.tensor(x.numpy()) for name, x in theirs.state_dict().items()})
    return [ours.eval(), theirs.eval()]


def encoder(t: Any, norm: bool = False, **options: Any) -> Any:
    kept = {name: options.pop(name) for name in ("enable_nested_tensor",) if name in options}
    layer = t.nn.TransformerEncoderLayer(4, 2, 8, **{"batch_first": True, **options})
    return t.nn.TransformerEncoder(layer, 2, t.nn.LayerNorm(4) if norm else None, **kept)


PADDED = {"last": [[0, 0, 1, 1, 1], [0] * 5, [0, 0, 0, 1, 1]], "among": [[0, 1, 0, 0, 1], [0] * 5, [0] * 5], "none": [[0] * 5] * 3,
          "whole": [[1] * 5, [0] * 5, [0, 0, 0, 0, 1]]}  # fmt: skip
ENCODERS = [("last", {}, {}), ("last", {"norm": True}, {}), ("among", {}, {}), ("none", {}, {}), ("whole", {}, {}), ("last", {"norm_first": True}, {}),
            ("last", {"enable_nested_tensor": False}, {}), ("last", {}, {"mask": True}), ("last", {}, {"grad": True}), ("last", {}, {"train": True}),
            ("last", {}, {"fast": False}), ("last", {}, {"float": True}), ("last", {"activation": "gelu"}, {})]  # fmt: skip


@pytest.mark.parametrize(("where", "options", "how"), ENCODERS)
def test_padding_comes_out_of_an_encoder_as_zeros_where_pytorch_leaves_it_out(
    where: str, options: Any, how: Any
) -> None:
    found = []
    for t, net in zip((rushlight, torch), same_weights(lambda t: encoder(t, dropout=0.0, **options)), strict=True):
        padding = t.tensor(PADDED[where]).bool()
        if "float" in how:
            padding = t.zeros(3, 5).masked_fill(padding, float("-inf"))
        t.backends.mha.set_fastpath_enabled(how.get("fast", True))
        net.train("train" in how)
        with t.set_grad_enabled("grad" in how):
            found.append(
                net(t.tensor(numbers(3, 5, 4)), t.zeros(5, 5) if "mask" in how else None, padding).detach().numpy()
            )
        t.backends.mha.set_fastpath_enabled(True)
    assert ((found[0] == 0) == (found[1] == 0)).all()
    np.testing.assert_allclose(*found, rtol=1e-4, atol=1e-5, equal_nan=True)


def test_attention_and_encoders_take_nested_tensors_in_evaluation() -> None:
    ours = []
    for build in (
        lambda t: t.nn.MultiheadAttention(4, 2, batch_first=True),
        encoder,
        lambda t: t.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True),
    ):
        found: list[Any] = []
        for t, net in zip((rushlight, torch), same_weights(build), strict=True):
            nt = t.nested.nested_tensor([t.tensor(numbers(n, 4)) for n in LENGTHS])
            with t.no_grad():
                result = net(nt, nt, nt) if isinstance(net, t.nn.MultiheadAttention) else (net(nt),)
            found.append([y.numpy() for x in result for y in x])
            with pytest.raises(AssertionError):
                net(nt, nt, nt) if isinstance(net, t.nn.MultiheadAttention) else net(nt)
        ours.append(found)
    for found in ours:
        for a, b in zip(*found, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("options", [{"bias": False}, {"num_heads": 1}, {"batch_first": False}])
def test_attention_refuses_nested_tensors_elsewhere(options: Any) -> None:
    for t in (rushlight, torch):
        net = t.nn.MultiheadAttention(**{"embed_dim": 4, "num_heads": 2, "batch_first": True, **options}).eval()
        nt = t.nested.nested_tensor([t.tensor(numbers(n, 4)) for n in LENGTHS])
        with t.no_grad(), pytest.raises(AssertionError):
            net(nt, nt, nt, need_weights=False)


@pytest.mark.parametrize("layout", ["jagged", "strided"])
@pytest.mark.parametrize("ways", ["ours", "from PyTorch", "to PyTorch"])
def test_files_are_read_both_ways(layout: str, ways: str) -> None:
    writes, reads = (torch if ways == "from PyTorch" else rushlight), (torch if ways == "to PyTorch" else rushlight)
    kind = getattr(writes, layout)
    leaf = writes.nested.nested_tensor([writes.tensor(numbers(n, 4)) for n in LENGTHS], layout=kind, requires_grad=True)
    file = io.BytesIO()
    writes.save({"leaf": leaf, "turned": leaf.detach().transpose(1, 2)}, file)
    file.seek(0)
    found = reads.load(file)
    for name, x in (("leaf", leaf), ("turned", leaf.transpose(1, 2))):
        assert [p.tolist() for p in found[name].unbind()] == [p.tolist() for p in x.unbind()]
        assert str(found[name].layout) == f"torch.{layout}" and found[name].requires_grad is (name == "leaf")


@pytest.mark.parametrize(
    "wrong", [{"offsets": [0, 2, 9]}, {"offsets": [0, -2, 3]}, {"_ragged_idx": 3}, {"values": 1}, {"lengths": [1]}]
)
def test_places_of_a_file_that_are_not_among_the_values_are_refused(wrong: dict[str, Any]) -> None:
    from rushlight.serialization.rebuild import _rebuild_nested_tensor, _rebuild_njt

    parts = {
        "values": rushlight.ones(3, 2),
        "offsets": [0, 2, 3],
        "lengths": None,
        "_ragged_idx": 1,
        "requires_grad": False,
        **wrong,
    }
    for name in ("offsets", "lengths"):
        parts[name] = rushlight.tensor(parts[name]) if isinstance(parts[name], list) else parts[name]
    with pytest.raises((ValueError, TypeError)):
        _rebuild_njt(parts)
    sizes = rushlight.tensor([[4, 5]])
    with pytest.raises((ValueError, TypeError)):
        _rebuild_nested_tensor(rushlight.ones(6), sizes, sizes, rushlight.tensor([0]))
