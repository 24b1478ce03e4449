"""Recurrent networks against plain loops, and packed sequences."""

import itertools
from typing import Any

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn import recurrent, rnn_fused
from rushlight.nn.utils import rnn as sequences


def close(a: Any, b: Any, tolerance: float = 1e-10) -> bool:
    return a.shape == b.shape and (a.numel() == 0 or (a - b).abs().max().item() < tolerance)


def made(mode: str, **options: Any) -> Any:
    torch.manual_seed(1)
    if mode in ("tanh", "relu"):
        return nn.RNN(3, 4, nonlinearity=mode, dtype=torch.float64, **options)
    return getattr(nn, mode)(3, 4, dtype=torch.float64, **options)


def cell_of(mode: str) -> Any:
    return {"tanh": recurrent.rnn_tanh_cell, "relu": recurrent.rnn_relu_cell, "GRU": recurrent.gru_cell,
            "LSTM": recurrent.lstm_cell}[mode]  # fmt: skip


def lstm_of_gates(x: Any, state: Any, cell: Any) -> Any:
    """A step of an LSTM as it is written down."""
    h, c = state
    i, f, g, o = (x @ cell.weight_ih.T + cell.bias_ih + h @ cell.weight_hh.T + cell.bias_hh).chunk(4, 1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


@pytest.mark.parametrize("order", [1, 2])
def test_a_step_of_an_lstm_cell_is_one_operator_with_gradients_of_any_order(order: int) -> None:
    torch.manual_seed(0)
    cell = nn.LSTMCell(3, 4, dtype=torch.float64)
    x, h, c = (torch.randn(2, n, dtype=torch.float64, requires_grad=True) for n in (3, 4, 4))
    wanted = [x, h, c, *cell.parameters()]

    def gradients(step: Any) -> Any:
        state = step(x, step(x, (h, c)))
        return torch.autograd.grad((state[0].sin() + state[1].square()).sum(), wanted, create_graph=order > 1)

    found, expected = gradients(cell), gradients(lambda x, state: lstm_of_gates(x, state, cell))
    if order > 1:
        found, expected = (torch.autograd.grad(sum(g.exp().sum() for g in of), wanted) for of in (found, expected))
    assert all(close(a, b) for a, b in zip(found, expected, strict=True))
    after, next_c = cell(x, (h, c))
    assert after.grad_fn is next_c.grad_fn
    names = {node.name() for node, _ in after.grad_fn.next_functions if node is not None}
    assert "LinearBackward0" in names and len(names) == 2, names  # and the leaf c


def test_a_step_of_an_lstm_cell_under_vmap_and_in_forward_mode() -> None:
    torch.manual_seed(0)
    cell = nn.LSTMCell(3, 4, dtype=torch.float64)
    x, h, c = (torch.randn(5, 2, n, dtype=torch.float64) for n in (3, 4, 4))
    step = lambda x, h, c: torch.stack(cell(x, (h, c)))
    for dims in ((0, 0, 0), (0, None, 0), (None, 0, None), (0, 0, None)):
        given = [t if d == 0 else t[0] for t, d in zip((x, h, c), dims, strict=True)]
        each = [step(*(t[k] if d == 0 else t for t, d in zip(given, dims, strict=True))) for k in range(5)]
        assert close(torch.func.vmap(step, dims)(*given), torch.stack(each))
    at = (x[0], h[0], c[0])
    _, tangent = torch.func.jvp(step, at, tuple(torch.ones_like(t) for t in at))
    plain = lambda x, h, c: torch.stack(lstm_of_gates(x, (h, c), cell))
    assert close(tangent, torch.func.jvp(plain, at, tuple(torch.ones_like(t) for t in at))[1])


def test_the_state_of_an_lstm_cell_may_be_changed_in_place_before_the_next_step() -> None:
    """As one does where episodes end: a step keeps neither of its results."""
    cell, x = nn.LSTMCell(3, 4), torch.randn(2, 3)
    h, c = cell(x)
    h.mul_(0.5)
    c.mul_(torch.tensor([[0.0], [1.0]]))
    h, c = cell(x, (h, c))
    (h.sum() + c.sum()).backward()
    assert cell.weight_hh.grad is not None and cell.weight_hh.grad.isfinite().all()


@pytest.mark.parametrize("mode", ["tanh", "relu", "GRU", "LSTM"])
def test_equals_a_loop_over_the_cell(mode: str) -> None:
    net = made(mode)
    x = torch.randn(5, 2, 3, dtype=torch.float64)
    state: Any = torch.zeros(2, 4, dtype=torch.float64)
    state = (state, state) if mode == "LSTM" else state
    outputs = []
    for step in x:
        state = cell_of(mode)(step, state, *net.all_weights[0])
        outputs.append(state[0] if mode == "LSTM" else state)
    output, last = net(x)
    assert close(output, torch.stack(outputs))
    for a, b in zip(last, state) if mode == "LSTM" else ((last, state),):
        assert close(a[0], b)


@pytest.mark.parametrize(
    ("mode", "options"),
    [(m, o) for m, o in itertools.product(
        ["tanh", "relu", "GRU", "LSTM"],
        [{}, {"bias": False}, {"num_layers": 2, "bidirectional": True}, {"batch_first": True}],
    )] + [("LSTM", {"proj_size": 2, "num_layers": 2}), ("LSTM", {"proj_size": 2, "bidirectional": True})],
)  # fmt: skip
@pytest.mark.parametrize("lengths", [None, [5, 3, 3, 1], [2, 5, 1, 5]])
def test_gradients_equal_those_of_operators(mode: str, options: Any, lengths: Any, monkeypatch: Any) -> None:
    """The arrays' own backward against the operators', also differentiated twice."""
    net = made(mode, **options)
    x = torch.randn(4, 5, 3, dtype=torch.float64)
    x = (x if options.get("batch_first") else x.transpose(0, 1).contiguous()).requires_grad_()
    results = []
    for fused in (True, False):
        with monkeypatch.context() as patched:
            if not fused:
                patched.setattr(rnn_fused, "usable", lambda tensors: False)
            inputs: Any = x
            if lengths:
                inputs = sequences.pack_padded_sequence(
                    x, lengths, batch_first=bool(options.get("batch_first")), enforce_sorted=False
                )
            output, last = net(inputs)
            outs = [output.data if lengths else output, *(last if mode == "LSTM" else [last])]
            loss = sum((o * o * torch.arange(float(o.numel())).reshape(o.shape).cos()).sum() for o in outs)
            leaves = [x, *net.parameters()]
            first = torch.autograd.grad(loss, leaves, retain_graph=True)
            recorded = torch.autograd.grad(loss, leaves, create_graph=True)
            second = torch.autograd.grad(sum((g * g).sum() for g in recorded), leaves)
            with torch.no_grad():
                again, _ = net(inputs)
            results.append([*outs, *first, *recorded, *second, again.data if lengths else again])
    assert all(close(a, b, 1e-8) for a, b in zip(*results))


def test_dropout_between_layers() -> None:
    net = nn.LSTM(3, 4, 2, dropout=1.0)
    output, _ = net(torch.randn(5, 2, 3))
    other, _ = net(torch.randn(5, 2, 3))
    assert close(output, other, 1e-6)  # the second layer sees nothing
    assert not close(net.eval()(torch.randn(5, 2, 3))[0], other, 1e-6)
    with pytest.warns(UserWarning, match="num_layers greater than 1"):
        nn.GRU(2, 3, dropout=0.5)


def test_without_a_batch() -> None:
    net = nn.GRU(3, 4)
    x = torch.randn(5, 3)
    output, last = net(x)
    batched, _ = net(x.unsqueeze(1))
    assert output.shape == (5, 4) and last.shape == (1, 4) and close(output, batched.squeeze(1), 1e-6)


def test_half_precision_runs_by_operators() -> None:
    output, _ = nn.LSTM(3, 4, dtype=torch.float16)(torch.ones(2, 1, 3, dtype=torch.float16))
    assert output.dtype is torch.float16 and output.shape == (2, 1, 4)


def test_frozen_weights_get_no_gradients() -> None:
    net = nn.LSTM(3, 4)
    net.weight_ih_l0.requires_grad_(False)
    net(torch.randn(5, 2, 3))[0].sum().backward()
    assert net.weight_ih_l0.grad is None and net.weight_hh_l0.grad is not None


def test_wrong_sizes_are_refused() -> None:
    net = nn.LSTM(3, 4)
    with pytest.raises(RuntimeError, match="Expected 3, got 2"):
        net(torch.ones(5, 1, 2))
    with pytest.raises(RuntimeError, match=r"Expected hidden\[1\] size"):
        net(torch.ones(5, 1, 3), (torch.ones(1, 1, 4), torch.ones(1, 1, 3)))
    with pytest.raises(RuntimeError, match="larger than 0"):
        net(torch.ones(0, 1, 3))
    with pytest.raises(ValueError, match="does not match weight dtype"):
        net(torch.ones(5, 1, 3, dtype=torch.float64))


def test_packing_round_trip() -> None:
    rows = [torch.arange(3.0), torch.arange(1.0), torch.arange(5.0)]
    packed = sequences.pack_sequence(rows, enforce_sorted=False)
    assert packed.batch_sizes.tolist() == [3, 2, 2, 1, 1] and packed.sorted_indices.tolist() == [2, 0, 1]
    assert packed.data.tolist() == [0, 0, 0, 1, 1, 2, 2, 3, 4]
    assert [r.tolist() for r in sequences.unpack_sequence(packed)] == [r.tolist() for r in rows]
    padded, lengths = sequences.pad_packed_sequence(packed, batch_first=True, padding_value=-1.0, total_length=6)
    assert padded.shape == (3, 6) and lengths.tolist() == [3, 1, 5] and padded[1].tolist() == [0.0] + [-1.0] * 5
    assert packed.double().data.dtype is torch.float64 and packed.to("cpu") is packed
    with pytest.raises(RuntimeError, match="sorted in decreasing order"):
        sequences.pack_sequence(rows)


@pytest.mark.parametrize("requires_grad", [False, True])
def test_padding(requires_grad: bool) -> None:
    rows = [torch.ones(2, 2, requires_grad=requires_grad), torch.ones(3, 2)]
    right = sequences.pad_sequence(rows, batch_first=True, padding_value=7.0)
    left = sequences.pad_sequence(rows, padding_side="left")
    assert right[0].tolist() == [[1.0, 1.0], [1.0, 1.0], [7.0, 7.0]] and left[:, 0, 0].tolist() == [0.0, 1.0, 1.0]
    assert [r.shape[0] for r in sequences.unpad_sequence(right, torch.tensor([2, 3]), batch_first=True)] == [2, 3]
    if requires_grad:
        right.sum().backward()
        assert rows[0].grad.tolist() == [[1.0, 1.0], [1.0, 1.0]]


@pytest.mark.parametrize("mode", ["tanh", "relu", "LSTM", "GRU"])
def test_a_recorded_layer_sends_on_the_tangent_of_its_gradient_and_gradients_of_several_rows(mode: str) -> None:
    """The kernels of its node saw arrays alone: the tangent was lost in silence, and rows (`is_grads_batched`) were no arrays."""
    layer, forward_ad = made(mode), torch.autograd.forward_ad
    x = torch.randn(5, 2, 3, dtype=torch.float64, requires_grad=True)
    y = layer(x)[0]
    g, moved = torch.randn_like(y).detach(), torch.randn_like(y).detach()
    rows = torch.stack([g, moved])
    wanted = [torch.autograd.grad(y, x, row, retain_graph=True)[0] for row in rows]
    (found,) = torch.autograd.grad(y, x, rows, is_grads_batched=True, retain_graph=True)
    assert close(found, torch.stack(wanted)) and not found.requires_grad
    with forward_ad.dual_level():
        (both,) = torch.autograd.grad(y, x, forward_ad.make_dual(g, moved))
        assert not both.requires_grad
        for part, one in zip(forward_ad.unpack_dual(both), wanted, strict=True):
            assert close(part, one)  # it is linear in the gradient
