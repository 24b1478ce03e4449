"""Recomputation: what is dropped, that gradients stay the same bit for bit, and what it refuses."""

import contextlib
from typing import Any

import pytest

import rushlight as torch
from rushlight import nn, stores
from rushlight.basics.state import modes
from rushlight.stores.recipes import Again

F = nn.functional


def both(net: Any, x: Any, **options: Any) -> Any:
    """The store, after the gradients with it were compared with those without."""
    results = []
    for store in (None, stores.recompute(min_bytes=0, **options)):
        net.zero_grad()
        torch.manual_seed(5)
        if store is None:
            y = net(x).square().sum()
        else:
            with store:
                y = net(x).square().sum()
        y.backward()
        results.append([p.grad.clone() for p in net.parameters()])
    assert all((a == b).all() for a, b in zip(*results, strict=True))
    return store


def test_a_convolution_block_keeps_one_tensor_of_two() -> None:
    for inplace in (False, True):
        net = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(inplace), nn.Conv2d(8, 8, 3, padding=1)
        )
        store = both(net, torch.randn(4, 3, 16, 16))
        assert store.stats()["dropped_bytes"] == 4 * 8 * 16 * 16 * 4


def test_running_statistics_move_once() -> None:
    net = nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 1, 1))
    x = torch.randn(2, 3, 5, 5)
    with stores.recompute(min_bytes=0) as store:
        y = net(x).sum()
    state = {k: v.clone() for k, v in net.state_dict().items()}
    y.backward()
    assert store.stats()["tensors"] > 0
    assert all((state[k] == v).all() for k, v in net.state_dict().items()) and state["1.num_batches_tracked"] == 1


def test_dropout_keeps_its_draws() -> None:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b, self.norm = nn.Linear(32, 32), nn.Linear(32, 32), nn.LayerNorm(32)

        def forward(self, x: Any) -> Any:
            return self.b(F.dropout(F.gelu(self.norm(self.a(x))), 0.4))

    store = both(Block(), torch.randn(16, 32))
    assert store.stats()["dropped_bytes"] >= 2 * 16 * 32 * 4  # what gelu and b save; a's result is kept for the norm


def test_the_limit_bounds_what_runs_again() -> None:
    class Long(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8)

        def forward(self, x: Any) -> Any:
            x = self.a(x).square()
            for _ in range(9):
                x = self.b(x * 0.5 + 0.1)
                x = x.sin() + x.square() * 0.1
            return x

    x, net = torch.randn(8, 8), Long()
    # Three operators before the first use of b, six before the others, four before what follows the net.
    assert [both(net, x, limit=n).stats()["tensors"] for n in (3, 4, 6)] == [1, 2, 10]


def test_small_inputs_may_change_afterwards() -> None:
    w, b = torch.randn(32, 32).requires_grad_(), torch.randn(32).requires_grad_()
    x = torch.randn(64, 32) / 10
    plain = torch.func.grad(lambda w: (((x @ w).square() + b).exp2() @ w).sum())(w)
    with stores.recompute(min_bytes=0) as store:
        y = (((x @ w).square() + b).exp2() @ w).sum()
    assert store.stats()["tensors"] > 0
    with torch.no_grad():
        b.add_(1)  # nobody saved it
    y.backward()
    assert torch.allclose(w.grad, plain)


def test_large_parameters_that_nothing_saved_may_change() -> None:
    w, b = torch.randn(32, 32).requires_grad_(), torch.randn(64, 32).requires_grad_()
    x, found, before = torch.randn(64, 32), [], b.detach().clone()
    for store in (stores.recompute(min_bytes=0), torch.enable_grad()):
        with store:
            y = (((x @ w).square() + b).sin() @ w).sum()
        with torch.no_grad():
            b.add_(1)
        found.append(torch.autograd.grad(y, (w, b)))
        with torch.no_grad():
            b.copy_(before)
    for a, expected in zip(*found, strict=True):
        assert torch.equal(a, expected)


def test_nothing_is_left_behind() -> None:
    store = stores.recompute(min_bytes=0)
    w = torch.randn(32, 32).requires_grad_()
    with pytest.raises(ValueError, match="oops"), store:
        y = ((w * 2).square() @ w).relu()
        raise ValueError("oops")
    assert modes.observers == () and modes.saved_hooks == () and store.recipes.calls.open == []
    with pytest.raises(RuntimeError), store:
        w.sin() + torch.ones(7)
    assert store.recipes.calls.open == []
    del y
    assert len(store.recipes.recipes) == 0


def test_what_it_needs_comes_from_other_stores(tmp_path: Any) -> None:
    net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.Flatten())
    x = torch.randn(4, 3, 16, 16)
    net(x).square().sum().backward()
    plain = [p.grad.clone() for p in net.parameters()]
    for disk_first in (False, True):
        net.zero_grad()
        disk, again = stores.disk(tmp_path, min_bytes=0), stores.recompute(min_bytes=0)
        with disk if disk_first else again, again if disk_first else disk:
            y = net(x).square().sum()
        assert again.stats()["tensors"] > 0 and disk.stats()["tensors"] > 0
        y.backward()
        assert all((p.grad == g).all() for p, g in zip(net.parameters(), plain, strict=True))


def test_what_hooks_within_make_is_not_taken_for_the_result() -> None:
    w = torch.randn(16, 16).requires_grad_()
    plain = torch.func.grad(lambda w: ((w @ w).square().tanh() @ w).sum())(w)
    halves = torch.autograd.graph.saved_tensors_hooks(lambda t: t * 0.5, lambda t: t * 2)
    with stores.recompute(min_bytes=0):
        a = (w @ w).square()
        with halves:
            h = a.tanh()
        y = (h @ w).sum()
    y.backward()
    assert (w.grad == plain).all()


def test_layouts_are_those_of_the_first_time() -> None:
    w = torch.randn(16, 16).requires_grad_()
    store = stores.recompute(min_bytes=0)
    with store:
        h = (w @ w).square().t() * 1.0  # in the order of its transpose
        y = h.exp2()
        z = y @ w
    saved = [r() for _, r in store.recipes.regions.values()]
    assert any(r is not None and isinstance(r.kept, Again) for r in saved)
    z.sum().backward()


def norm_state(wrap: Any) -> list[Any]:
    """What three steps leave in a batch norm."""
    torch.manual_seed(0)
    part = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.BatchNorm1d(8), torch.nn.Tanh())
    model = wrap(part)
    for _ in range(3):
        model(torch.randn(6, 8)).square().sum().backward()
    part.eval()
    model(torch.randn(6, 8)).sum().backward()  # statistics that are saved are not touched
    return [*part.state_dict().values(), *(p.grad for p in part.parameters())]


def test_norms_of_a_wrapped_module_count_a_batch_once() -> None:
    plain, found = norm_state(lambda part: part), norm_state(lambda part: stores.recompute()(part))
    assert all(torch.equal(a, b) for a, b in zip(plain, found, strict=True))


class Drifting(nn.Module):
    """Results depend on buffers that each run changes, in place and by another tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("factor", torch.ones(1))
        self.register_buffer("other", torch.ones(1))

    def forward(self, x: Any) -> Any:
        self.factor.mul_(1.5)
        self.other = self.other * 1.1
        return (x * self.factor.clone()).tanh() * self.other


@pytest.mark.parametrize(
    "part",
    [lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(8, 8)), Drifting],
    ids=["spectral_norm", "buffers"],
)
def test_a_wrapped_module_runs_again_with_the_buffers_that_it_had(part: Any) -> None:
    found = []
    for wrap in (lambda net: net, lambda net: stores.recompute()(net)):
        torch.manual_seed(0)
        net = wrap(nn.Sequential(nn.Linear(8, 8), part(), nn.Tanh(), nn.Linear(8, 2)))
        x = torch.randn(4, 8)
        for _ in range(2):
            (net(x).square().sum() + net(x * 2).sin().sum()).backward()
        found.append([*(p.grad for p in net.parameters()), *net.buffers()])
    assert all((a == b).all() for a, b in zip(*found, strict=True))


class Counting(nn.Module):
    """Results save a buffer that each run changes; `apart`: a copy of it."""

    def __init__(self, apart: bool) -> None:
        super().__init__()
        self.apart = apart
        self.register_buffer("factor", torch.ones(8))

    def forward(self, x: Any) -> Any:
        self.factor.mul_(1.5)
        return (x.tanh() * (self.factor.clone() if self.apart else self.factor)).sin()


def test_a_buffer_that_a_second_run_saves_is_not_changed_when_it_ends() -> None:
    found = []
    for apart in (True, False):
        torch.manual_seed(0)
        net = stores.recompute(min_bytes=0)(Counting(apart))
        x = torch.randn(4, 8, requires_grad=True)
        (net(x).square().sum() + net(x * 2).sin().sum()).backward()
        found.append([x.grad, *net.buffers()])
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))


def test_a_wrapped_module_may_have_sparse_buffers() -> None:
    class Graph(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("edges", torch.eye(4).to_sparse())

        def forward(self, x: Any) -> Any:
            return torch.sparse.mm(self.edges, x).tanh()

    x = torch.randn(4, 2, requires_grad=True)
    stores.recompute(min_bytes=0)(Graph())(x).sum().backward()
    assert torch.allclose(x.grad, 1 - x.detach().tanh() ** 2)


def test_lazy_modules_become_others_within_a_wrapped_one() -> None:
    found = []
    for wrap in (lambda net: net, stores.recompute(min_bytes=0)):
        net = wrap(nn.Sequential(nn.LazyBatchNorm1d(), nn.Tanh()).eval())
        x = torch.linspace(0, 1, 15).reshape(3, 5).requires_grad_()
        net(x).sum().backward()
        found.append(x.grad)
    assert torch.equal(*found)


@pytest.mark.parametrize("part", [lambda h: h[..., ::2], lambda h: h[:, 1:], lambda h: h.t()[::3], lambda h: h[::2]])
def test_what_is_changed_in_part_is_not_made_again_by_that_change(part: Any) -> None:
    """A view with gaps spans its memory: what lies between is no result of the operator that changed the view."""
    found = []
    for store in (contextlib.nullcontext(), stores.recompute(min_bytes=0)):
        torch.manual_seed(0)
        x = torch.randn(64, 32, requires_grad=True)
        with store:
            h = x.sigmoid() * 1
            part(h).mul_(2)
            loss = h.square().sum()
        del h
        loss.backward()
        found.append(x.grad)
    assert torch.equal(*found)
