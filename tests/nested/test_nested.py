"""Nested tensors: gradients, memory, what stands for sizes, and that tensors without nesting pay nothing."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
from tests.processes import printed

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import memory
from rushlight.nested._internal.nested_tensor import NestedTensor, jagged_from_list, nested_view_from_values_offsets

OFFSETS = torch.tensor([0, 2, 5, 6])


def jagged(values: Any) -> Any:
    return torch.nested.nested_tensor_from_jagged(values, OFFSETS)


def heads(nt: Any) -> Any:
    return nt.unflatten(-1, (2, 2)).transpose(1, 2)


# Of a nested tensor of values (6, 4): each result is nested or dense.
GRADIENTS: dict[str, Any] = {
    "elements": lambda x: x.exp() * x + 1 / (x * x + 2), "broadcast": lambda x: x * torch.arange(12.0).double().reshape(3, 1, 4).sin(),
    "padded operand": lambda x: x * torch.arange(36.0).double().reshape(3, 3, 4).cos(), "softmax along": lambda x: x.softmax(1),
    "softmax": lambda x: x.softmax(-1), "sum": lambda x: x.sum(1), "mean": lambda x: x.mean(1, keepdim=True), "largest": lambda x: x.amax(1),
    "places": lambda x: x.max(1).values, "last": lambda x: x.mean(-1), "all": lambda x: x.square().sum((0, 1)), "padding": lambda x: x.to_padded_tensor(0.5),
    "more padding": lambda x: x.to_padded_tensor(0.5, (3, 5, 6)), "cut": lambda x: x.to_padded_tensor(0.0, (3, 2, 4)),
    "turned padding": lambda x: x.transpose(1, 2).to_padded_tensor(0.0), "attention": lambda x: F.scaled_dot_product_attention(heads(x), heads(x) * 2, heads(x)),
    "causal": lambda x: F.scaled_dot_product_attention(heads(x), heads(x), heads(x), is_causal=True), "norm": lambda x: F.layer_norm(x, (4,)),
    "rms": lambda x: F.rms_norm(x, (4,)), "product": lambda x: x @ torch.ones(4, 3).double(), "products": lambda x: x @ torch.ones(3, 4, 2).double(),
    "over the ragged": lambda x: x.transpose(1, 2) @ x, "beside": lambda x: torch.cat([x, x * 2], -1), "parts": lambda x: x.chunk(2, -1)[1],
    "groups": lambda x: x.chunk(2, 0)[1], "one": lambda x: x[1], "shape": lambda x: x.view(3, -1, 2, 2).transpose(2, 3).contiguous(),
    "index": lambda x: x[..., 1:3], "squeezed": lambda x: x.unsqueeze(-1).squeeze(-1), "selected": lambda x: x.select(2, 1),
}  # fmt: skip


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_are_those_of_differences(name: str) -> None:
    def of_values(values: Any) -> Any:
        y = GRADIENTS[name](jagged(values))
        return y.contiguous().values() if y.is_nested else y

    assert torch.autograd.gradcheck(of_values, torch.randn(6, 4, dtype=torch.float64, requires_grad=True))


@pytest.mark.parametrize("layout", [torch.jagged, torch.strided])
def test_gradients_reach_components_and_hooks_see_them_nested(layout: Any) -> None:
    parts: list[Any] = [torch.ones(n, 2, requires_grad=True) for n in (1, 3)]
    nt = torch.nested.as_nested_tensor(parts, layout=layout)
    seen: list[Any] = []
    nt.register_hook(lambda g: seen.append([tuple(x.shape) for x in g.unbind()]))
    (nt * nt).to_padded_tensor(0.0).sum().backward()
    assert seen == [[(1, 2), (3, 2)]] and [x.grad.tolist() for x in parts] == [[[2, 2]], [[2, 2]] * 3]


@pytest.mark.parametrize("layout", [torch.jagged, torch.strided])
def test_hooks_of_modules_see_gradients_nested_and_may_replace_them(layout: Any) -> None:
    net, seen = torch.nn.Linear(2, 1, bias=False), []
    net.register_full_backward_pre_hook(lambda m, out: (out[0] * 2,))
    net.register_full_backward_hook(lambda m, into, out: seen.extend([*into, *out]) or (into[0] * 3,))
    nt = torch.nested.nested_tensor([torch.ones(n, 2) for n in (1, 3)], layout=layout, requires_grad=True)
    net(nt).to_padded_tensor(0.0).sum().backward()
    assert [[tuple(x.shape) for x in g.unbind()] for g in seen] == [[(1, 2), (3, 2)], [(1, 1), (3, 1)]]
    assert net.weight.grad.tolist() == [[8, 8]]
    assert torch.allclose(nt.grad.unbind()[1], 6 * net.weight.detach().expand(3, 2))


def test_hooks_keep_no_values_and_close_no_cycle() -> None:
    nt = torch.nested.nested_tensor([torch.ones(n, 2) for n in (1, 3)], layout=torch.jagged, requires_grad=True)
    nt.register_hook(lambda g: None)
    values = weakref.ref(nt._values)
    gc.disable()
    try:
        del nt
        assert values() is None
    finally:
        gc.enable()


def test_layers_train_as_with_padding() -> None:
    torch.manual_seed(0)
    lengths = (2, 5, 3)
    net = torch.nn.Sequential(torch.nn.Embedding(9, 8), torch.nn.LayerNorm(8), torch.nn.Linear(8, 8), torch.nn.GELU())
    ids = [torch.randint(0, 9, (n,)) for n in lengths]
    padded, mask = (
        torch.nn.utils.rnn.pad_sequence(ids, batch_first=True),
        torch.arange(5) < torch.tensor(lengths)[:, None],
    )
    gradients = []
    for batch in (torch.nested.nested_tensor(ids, layout=torch.jagged), padded):
        x = net(batch)
        q = x.unflatten(-1, (2, 4)).transpose(1, 2)
        y = F.scaled_dot_product_attention(q, q, q, *(() if batch.is_nested else (mask[:, None, None],)))
        y = y.transpose(1, 2).flatten(2) + x
        loss = (y.values() if batch.is_nested else y[mask]).square().mean()
        gradients.append(torch.autograd.grad(loss, list(net.parameters())))
    for a, b in zip(*gradients, strict=True):
        assert torch.allclose(a, b, atol=1e-6)


def test_nothing_is_padded() -> None:
    nt = torch.nested.nested_tensor(
        [torch.ones(n, 256) for n in (4096, 1, 1, 1)], layout=torch.jagged, requires_grad=True
    )
    size = nt.values().nbytes
    before = memory.current()
    memory.reset_peak()
    y = F.linear(nt * 2, torch.ones(256, 256)).softmax(-1).mean(1)
    y.sum().backward()
    assert memory.peak() - before < 5 * size  # padded, each tensor would be four times the values
    assert nt.to_padded_tensor(0.0).nbytes > 3.9 * size


def test_components_share_memory_with_values_and_with_what_they_are_made_of() -> None:
    values = torch.zeros(6, 4)
    nt = jagged(values)
    nt[1].fill_(1.0)
    assert values.sum(1).tolist() == [0, 0, 4, 4, 4, 0] and nt.values().data_ptr() == values.data_ptr()
    part = torch.nested.narrow(torch.zeros(2, 3), 1, 1, torch.tensor([1, 2]), layout=torch.jagged)
    assert not part.is_contiguous() and [x.tolist() for x in part.contiguous().unbind()] == [[0], [0, 0]]
    with pytest.raises(RuntimeError, match="within the 3 places"):
        torch.nested.narrow(torch.zeros(2, 3), 1, 2, 2, layout=torch.jagged)


def test_what_stands_for_sizes() -> None:
    nt = jagged(torch.zeros(6, 4))
    size = nt.size(1)
    assert (
        size == (nt * 2).size(1) == jagged(torch.ones(6, 1)).size(1) and size != 3 and hash(size) == hash(nt.shape[1])
    )
    assert size >= 2 and size > 1 and not size < 2 and size * 2 == 2 * nt.size(1) and repr(size * 2).startswith("2*j")
    with pytest.raises(ValueError, match="stands for sizes that differ"):
        bool(size > 2)
    with pytest.raises(TypeError):
        torch.zeros(nt.shape)
    assert torch.nested.nested_tensor([torch.zeros(2)], layout=torch.jagged).size(1) != size


def test_what_is_not_there_says_so() -> None:
    nt = jagged(torch.zeros(6, 4))
    for call in (
        lambda: torch.flip(nt, [2]),
        lambda: F.cross_entropy(nt, nt),
        lambda: nt.cumsum(1),
        lambda: torch.linalg.norm(nt),
        lambda: nt.H,
    ):
        with pytest.raises(
            NotImplementedError,
            match=r"not implemented for nested tensors in the layout torch.jagged; apply it to values\(\)",
        ):
            call()
    with pytest.raises(NotImplementedError, match="expected a nested tensor, got a dense one"):
        torch.ones(2).to_padded_tensor(0.0)
    with pytest.raises(RuntimeError, match=r"give nested_tensor_from_jagged\(\) the offsets\(\) of the other"):
        nt + torch.nested.nested_tensor([torch.zeros(n, 4) for n in (2, 3, 1)], layout=torch.jagged)
    with pytest.raises(RuntimeError, match="cannot become a nested one in place"):
        torch.zeros(4).add_(nt)


def test_names_that_libraries_import() -> None:
    found, offsets = jagged_from_list([torch.zeros(2), torch.ones(1)], None)
    assert (
        isinstance(found, NestedTensor)
        and offsets.tolist() == [0, 2, 3]
        and type(found).__module__.endswith("nested.tensor")
    )
    assert nested_view_from_values_offsets(torch.zeros(3), offsets).size(1) == found.size(1)
    assert not isinstance(torch.nested.nested_tensor([[1.0]]), NestedTensor)


def test_who_nests_nothing_pays_nothing() -> None:
    """The room is not imported, and functions do not ask classes."""
    program = """
import sys
import rushlight as torch
layer = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), 1).eval()
with torch.no_grad():
    layer(torch.ones(2, 3, 4), src_key_padding_mask=torch.tensor([[False, False, True]] * 2))
torch.ones(2).is_nested, torch.jagged
from rushlight.overrides.public import state
print([m for m in sys.modules if m.startswith("rushlight.nested")], state["armed"])
"""
    assert printed("-c", program) == "[] False\n"


def test_functions_of_ones_own_refuse_what_would_get_no_gradient():
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    nt = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(1, 3)], layout=torch.jagged, requires_grad=True)
    with pytest.raises(
        NotImplementedError, match=r"argument 0 is a nested tensor that requires grad.*give its values\(\)"
    ):
        Double.apply(nt)
    assert Double.apply(nt.detach()).is_nested


def test_lengths_are_as_many_as_components():
    values, offsets = torch.ones(6, 3), torch.tensor([0, 2, 5])
    with pytest.raises(ValueError, match="a length for each of 2 components, got 3"):
        torch.nested.nested_tensor_from_jagged(values, offsets, lengths=torch.tensor([1, 2, 1]))
    nt = torch.nested.nested_tensor_from_jagged(values, offsets, lengths=torch.tensor([1, 2]))
    assert [tuple(x.shape) for x in nt.unbind()] == [(1, 3), (2, 3)]
