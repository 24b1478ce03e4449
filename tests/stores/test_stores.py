"""Stores as users meet them."""

import copy
import gc
import os
import pickle
import threading
import time
import warnings
import weakref
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from tests.memory.awake import awake
from tests.stores.test_files import failing, ran

import rushlight as torch
from rushlight import nn, stores
from rushlight.autograd.graph import disable_saved_tensors_hooks, save_on_cpu, saved_tensors_hooks
from rushlight.stores import StoreError, StoreWarning
from rushlight.utils.checkpoint import checkpoint

BIG = (64, 64)  # 16384 bytes


def leaf(*shape: int, seed: int = 0) -> Any:
    torch.manual_seed(seed)
    return torch.randn(*(shape or BIG)).requires_grad_()


def every(dir: Any = None) -> list[Any]:
    return [stores.cpu(), stores.disk(dir, min_bytes=0), stores.compress("lossless")]


def finished(store: Any) -> Any:
    store.spill.flush()
    while store.spill.active:
        time.sleep(0.001)
    return store.stats()


# Sharing ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", range(3))
def test_one_memory_is_stored_once(which: int, tmp_path: Path) -> None:
    store, x = every(tmp_path)[which], leaf()
    with store:
        h = x * 1.5
        y = (h.exp().sum() + h.sin().sum() + h.t().cos().sum() + h.view(-1)[128:3000].sinh().sum()
             + (h[None].expand(3, *BIG) ** 2).sum() + h[:, ::2].cosh().sum())  # fmt: skip
    stats = store.stats()
    assert (stats["tensors"], stats["bytes"], stats["shared_tensors"]) == (2, 2 * 16384, 4)
    y.backward()
    z = (x * 1.5).detach().requires_grad_()
    plain = (z.exp().sum() + z.sin().sum() + z.cos().sum() + z.view(-1)[128:3000].sinh().sum() + 3 * (z**2).sum()
             + z[:, ::2].cosh().sum())  # fmt: skip
    plain.backward()
    assert torch.allclose(x.grad, z.grad * 1.5)


@pytest.mark.parametrize("which", range(3))
def test_memory_comes_back_with_its_axes_in_their_order(which: int, tmp_path: Path) -> None:
    store, x = every(tmp_path)[which], leaf(6, 40, 30)
    with store:
        h = x.transpose(1, 2) * 1.5  # an array whose own axes lie so
        y = h.sin()
    assert y.grad_fn._saved_self.stride() == h.stride() == (1200, 1, 30)


@pytest.mark.parametrize("make", [stores.cpu, stores.disk, stores.recompute])
def test_logits_whose_classes_lie_innermost_have_the_same_gradients(make: Any) -> None:
    def gradients(around: Any) -> list[bytes]:
        torch.manual_seed(0)
        layer, x, y = nn.Linear(20, 30), torch.randn(16, 10, 20), torch.randint(0, 30, (16, 10))
        with around:
            loss = nn.functional.cross_entropy(layer(x).transpose(1, 2), y)
        loss.backward()
        return [p.grad.numpy().tobytes() for p in layer.parameters()]

    store = make(min_bytes=1)
    store.warned = True
    assert gradients(store) == gradients(nullcontext())


def test_a_small_part_is_stored_without_the_rest(tmp_path: Path) -> None:
    x = leaf(400, 100)
    with stores.disk(tmp_path, min_bytes=0) as store:
        y = (x * 2)[:, :3].exp2().sum() + (x * 2)[5:7].sin().sum()
    assert store.stats()["bytes"] <= 400 * 3 * 4 * 2 + 800
    y.backward()


def test_a_changed_tensor_is_another(tmp_path: Path) -> None:
    for store in every(tmp_path):
        x, h = leaf(), torch.ones(BIG)
        with store:
            a = x * h
        finished(store) if store.on_disk else None
        h = h.clone()
        h.mul_(3)
        with store:
            b = x * h
        assert store.stats()["bytes"] == 2 * 16384
        (a + b).sum().backward()
        assert (x.grad == 4).all()


# Memory ----------------------------------------------------------------------------------------------


def test_memory_falls_without_the_cycle_collector(tmp_path: Path) -> None:
    gc.collect()
    gc.disable()
    try:
        store, x = stores.disk(tmp_path, min_bytes=0), leaf()
        with store:
            h = x.exp()  # whose result is saved, and by sin
            alive = weakref.ref(h._array)
            y = h.sin().sigmoid().sum()
        del h
        finished(store)
        assert alive() is None and store.memory_now == 0
        assert store.stats()["disk"] == 2 * 16384
        y.backward()
        del y
        assert finished(store)["disk"] == 0 and store.memory_now == 0
        other = stores.recompute()
        with other, store:
            y = ((x @ x).tanh().sigmoid() @ x).sum()
        ref = weakref.ref(y.grad_fn)
        del y
        assert ref() is None
        assert finished(store)["disk"] == 0
        done = weakref.ref(store)
        del store
        for _ in range(100):
            if done() is None:
                break
            time.sleep(0.01)
        assert done() is None
    finally:
        gc.enable()


def test_memory_of_a_step_is_bounded(tmp_path: Path) -> None:
    store, x = stores.disk(tmp_path, min_bytes=0, memory=40_000), leaf()
    seen = []
    with store:
        h = x
        for _ in range(30):
            h = h.tanh()
            h.register_hook(lambda g: time.sleep(0.002))  # while that is read ahead
            seen.append(store.memory_now)
    y = h.sum()
    del h
    x.register_hook(lambda g: seen.append(store.memory_now))
    y.backward()
    assert max(seen) <= 40_000
    assert finished(store)["read_ahead"] > 0


# Filters ---------------------------------------------------------------------------------------------


def test_filters() -> None:
    x, w = leaf(), leaf(seed=1)

    def stored(**filters: Any) -> Any:
        with stores.cpu(**filters) as store:
            y = ((x * 2).exp() @ w).sigmoid().sum() + (x[0] * 2).sin().sum()
        y.backward()
        return store.stats()

    whole = stored()
    assert (whole["tensors"], whole["parameters"], whole["small"]) == (2, 1, 1)
    assert stored(min_bytes=0)["tensors"] == 3
    assert stored(operator="exp")["tensors"] == 1
    assert stored(operator=["sig*", "mm"])["tensors"] == 2
    assert stored(operator=lambda name: name == "sigmoid")["tensors"] == 1
    assert stored(argument="input", min_bytes="256 B")["tensors"] == 2
    assert stored(parameters=True)["tensors"] == 3
    with pytest.raises(TypeError, match=r"operator=: expected a name"):
        stores.cpu(operator=3)
    with pytest.raises(TypeError, match=r"module=: expected names"):
        stores.cpu(module=3)
    with pytest.raises(ValueError, match=r"min_bytes: expected bytes"):
        stores.cpu(min_bytes="lots")


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = (
            nn.Sequential(nn.Linear(64, 64), nn.Tanh()),
            nn.Sequential(nn.Linear(64, 64), nn.Tanh()),
        )

    def forward(self, x: Any) -> Any:
        return self.second(self.first(x) * 2)


def test_filter_by_module() -> None:
    net, x = Net(), torch.randn(64, 64)

    def stored(*given: Any, wrap: bool) -> int:
        store = stores.cpu(module=given if len(given) > 1 else given[0])
        if wrap:
            store.wrap(net)(x).sum().backward()
        else:
            with store:
                y = net(x).sum()
            y.backward()
        return int(store.stats()["tensors"])

    for wrap in (False, True):
        assert stored("Tanh", wrap=wrap) == 2
        assert stored(nn.Linear, wrap=wrap) == 2
        assert stored(net.first, wrap=wrap) == 2
        assert stored(lambda m: m is net.second[1], net.first[1], wrap=wrap) == 2
        assert stored("Net", wrap=wrap) == 4
    assert stored("first.*", wrap=True) == 2
    assert stored("second", wrap=True) == 2
    from rushlight.nn.base.hooks import shared
    from rushlight.stores.filters import Following, running

    assert Following.count == 0 and not running.modules and not shared.forward_pre


# Wrapping --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [stores.cpu, lambda: stores.disk(min_bytes=0), lambda: stores.compress("lossless"),
                                  stores.recompute])  # fmt: skip
def test_wrapped_modules(make: Any) -> None:
    net, x = Net(), torch.randn(64, 64)
    net(x).square().sum().backward()
    plain = [p.grad.clone() for p in net.parameters()]
    net.zero_grad()
    store = make()
    wrapped = store(net)
    assert isinstance(wrapped, Net) and list(wrapped.state_dict()) == list(net.state_dict())
    assert all(a is b for a, b in zip(wrapped.parameters(), net.parameters(), strict=True))
    assert repr(wrapped).startswith(f"Net in stores.{store.kind}(\n")
    wrapped.eval()
    assert not net.training
    wrapped.train()
    wrapped(x).square().sum().backward()
    assert all((p.grad == g).all() for p, g in zip(net.parameters(), plain, strict=True))
    for other in (copy.deepcopy(wrapped), pickle.loads(pickle.dumps(wrapped)), store(stores.cpu()(net))):
        other.zero_grad()
        other(x).square().sum().backward()
        assert all((p.grad == g).all() for p, g in zip(other.parameters(), plain, strict=True))
    assert type(net) is Net


def test_wrapped_inside_another_module_and_functions(tmp_path: Path) -> None:
    store = stores.disk(tmp_path, min_bytes=0)
    net = Net()
    names = list(net.state_dict())
    net.first = store(net.first)
    assert list(net.state_dict()) == names
    net.load_state_dict(net.state_dict())
    net(torch.randn(64, 64)).sum().backward()
    assert store.stats()["tensors"] == 2

    @store
    def double(x: Any) -> Any:
        """Twice."""
        return x.exp() * 2

    assert double.__doc__ == "Twice."
    double(leaf()).sum().backward()
    assert store.stats()["tensors"] == 3


def test_a_wrapped_recompute_is_a_checkpoint() -> None:
    net, x, runs = Net(), leaf(), []
    net.first.register_forward_hook(lambda *_: runs.append(1))
    y = stores.recompute().wrap(net)(x).sum()
    assert len(runs) == 1
    y.backward()
    assert len(runs) == 2


# Nesting ---------------------------------------------------------------------------------------------


def test_the_inner_store_packs_first(tmp_path: Path) -> None:
    x = leaf()
    with stores.disk(tmp_path, min_bytes=0) as disk, stores.compress("bf16") as small:
        y = x.sin().exp().sum()
    assert finished(disk)["put"] == 8192 and small.stats()["compressed_bytes"] == 8192
    y.backward()
    with stores.compress("bf16") as small, stores.disk(tmp_path, min_bytes=0) as disk:
        z = x.sin().exp().sum()
    assert finished(disk)["put"] == 16384 and small.stats()["raw_bytes"] == 0
    z.backward()


def test_what_one_store_leaves_goes_to_the_next(tmp_path: Path) -> None:
    x = leaf()
    with stores.disk(tmp_path, min_bytes=0) as disk, stores.compress("lossless", operator="tanh") as small:
        y = x.exp().tanh().sum()
    assert small.stats()["tensors"] == 1 and disk.stats()["tensors"] == 2
    y.backward()


def test_hooks_around_a_store_get_what_it_makes() -> None:
    x, seen = leaf(), []

    def pack(t: Any) -> Any:
        seen.append((t.dtype, t.numel()))
        return t

    with saved_tensors_hooks(pack, lambda t: t), stores.compress("int8"):
        y = x.exp().sum()
    assert sorted(n for _, n in seen) == [16, 4096]
    y.backward()
    assert torch.allclose(x.grad, x.exp(), atol=x.detach().exp().max().item() / 254)


def test_entering_twice_is_entering_once(tmp_path: Path) -> None:
    x, store = leaf(), stores.disk(tmp_path, min_bytes=0)
    with store, store:
        y = x.exp().sum()
    assert store.stats()["tensors"] == 1 and store.stats()["put"] == 16384
    y.backward()
    from rushlight.basics.state import modes

    assert modes.saved_hooks == () and modes.observers == ()


def test_checkpoint_inputs_are_stored(tmp_path: Path) -> None:
    x = leaf()
    with stores.disk(tmp_path, min_bytes=0) as store:
        y = checkpoint(lambda a: a.exp().sin().tanh(), x * 1, use_reentrant=False).sum()
    assert store.stats()["tensors"] == 1
    y.backward()


def test_disabled_hooks_are_respected() -> None:
    with disable_saved_tensors_hooks("not here"), pytest.raises(RuntimeError, match="not here"):
        stores.cpu().__enter__()


def test_save_on_cpu_as_before() -> None:
    x = leaf()
    with save_on_cpu():
        y = (x * 2).exp().sum()
    y.backward()
    assert torch.allclose(x.grad, 2 * (2 * x).exp())


# Graphs ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", range(4))
def test_all_kinds_of_backward(which: int, tmp_path: Path) -> None:
    store = [*every(tmp_path), stores.recompute()][which]

    def f(x: Any, w: Any) -> Any:
        return ((x @ w).relu().exp2() @ w).sigmoid().square().mean()

    x, w = leaf(), leaf(seed=1)
    with store:
        y = f(x, w)
    y.backward(retain_graph=True)
    once = x.grad.clone()
    y.backward(retain_graph=True)
    assert (x.grad == 2 * once).all()
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    g.square().sum().backward()
    with store:
        (g,) = torch.autograd.grad(f(x, w), x, create_graph=True)
        h = g.square().sum()
    w.grad = None
    h.backward()
    mixed = w.grad.clone()
    (g,) = torch.autograd.grad(f(x, w), x, create_graph=True)
    w.grad = None
    g.square().sum().backward()
    assert (w.grad == mixed).all()
    with store:
        t = torch.func.grad(lambda a: f(a, w).sum())(x)
        batch = torch.func.vmap(torch.func.grad(lambda a: f(a[None], w)))(x)
    assert (t == once).all() and batch.shape == x.shape


def test_several_threads_share_a_store(tmp_path: Path) -> None:
    store, wrong = stores.disk(tmp_path, min_bytes=0, memory=100_000), []
    extra = stores.recompute()

    def work(seed: int) -> None:
        net, x = nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 64), nn.ReLU()), torch.full(BIG, seed / 10)
        for _ in range(8):
            net.zero_grad()
            net(x).square().sum().backward()
            plain = [p.grad.clone() for p in net.parameters()]
            net.zero_grad()
            with store, extra:
                y = net(x).square().sum()
            y.backward()
            wrong.extend(1 for p, g in zip(net.parameters(), plain, strict=True) if not (p.grad == g).all())

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong and store.stats()["tensors"] > 0
    assert finished(store)["disk"] == 0


def test_a_forked_child_runs_backward_and_trains(tmp_path: Path) -> None:
    code = f"""
import os
os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"
import rushlight as torch
from rushlight import stores
x = torch.randn(64, 64).requires_grad_()
store = stores.disk({str(tmp_path)!r}, min_bytes=0)
def step():
    with store:
        return x.sin().exp().tanh().sum()
y = step()
child = os.fork()
y.backward()
z = step()
z.backward()
good = torch.allclose(x.grad, 2 * torch.func.grad(lambda a: a.sin().exp().tanh().sum())(x))
del y, z
if child == 0:
    os._exit(0 if good else 7)
assert good and os.waitpid(child, 0)[1] == 0
print("both")
"""
    assert ran(code) == "both\n"


# Changes in place --------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", range(4))
def test_a_change_in_place_is_refused_as_without(which: int, tmp_path: Path) -> None:
    store, x = [*every(tmp_path), stores.recompute()][which], leaf()
    with store:
        h = x * 1
        y = h.exp2().sum() + h.sin().sum()
        h.add_(1)
    with pytest.raises(RuntimeError, match=r"modified by an inplace operation.*saved"):
        y.backward()
    with pytest.warns(StoreWarning), stores.cpu(min_bytes="1 MiB"):  # nothing is stored, the check stays
        h = x * 1
        y = h.sin().sum()
        h.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_a_tensor_changed_before_it_was_written_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate, write, x = threading.Event(), os.pwrite, leaf()
    monkeypatch.setattr(os, "pwrite", lambda *args: (gate.wait(10), write(*args))[1])
    store = stores.disk(tmp_path, min_bytes=0)
    with store:
        h = x * 1
        y = h.sin().sum()
        h.add_(1)
        del h
    gate.set()
    finished(store)
    with pytest.raises(RuntimeError, match=r"modified by an inplace operation: .*saved as 'input'"):
        y.backward()


def test_recompute_notices_changed_inputs() -> None:
    w, b, x = leaf(), leaf(), leaf()
    with stores.recompute() as store:
        y = ((x @ w) + b).exp2() @ w
        z = (x @ w).sin() @ w
    assert store.stats()["tensors"] == 0 or store.stats()["dropped_bytes"] > 0
    with torch.no_grad():
        b.add_(1)
    try:
        y.sum().backward()
    except RuntimeError as error:
        assert "modified by an inplace operation" in str(error)
    z.sum().backward()


# Errors ------------------------------------------------------------------------------------------------


def test_a_full_disk_leaves_graphs_usable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x, store = leaf(), stores.disk(tmp_path, min_bytes=0)
    with store:
        y = x.sin().exp().sum()
    monkeypatch.setattr("rushlight.stores.unlinked.space", lambda dir: 1000)
    store.spill.file.holes.clear()
    with pytest.raises(StoreError, match=r"16384 bytes .* do not fit on .*1000 bytes") as caught, store:
        x.tanh().exp().sum()
    assert "'out', saved by tanh" in caught.value.__notes__[0]
    y.backward()
    (x.tanh().exp().sum()).backward()  # without the store
    assert torch.allclose(x.grad, x.sin().exp() * x.cos() + x.tanh().exp() * (1 - x.tanh() ** 2), atol=1e-5)


def test_failed_writes_surface_and_gradients_are_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x, store = leaf(), stores.disk(tmp_path, min_bytes=0, threads=1)
    plain = torch.func.grad(lambda a: a.sin().exp().tanh().sum())(x)
    monkeypatch.setattr(os, "pwrite", failing(store.spill, 16384))
    y = None
    with pytest.raises(StoreError, match=r"write of 16384 bytes.*No space left"), store:
        y = x.sin().exp().tanh().sum()
        with pytest.raises(StoreError, match="No space left"):
            store.spill.flush()
        z = x.sin().exp()
        while store.spill.active or store.spill.writes:
            time.sleep(0.001)
    y.backward()
    assert torch.allclose(x.grad, plain)
    z.sum().backward()
    assert store.stats()["failed"] > 0


def test_a_backward_after_failed_writes_goes_on_with_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate, x, store = threading.Event(), leaf(), stores.disk(tmp_path, min_bytes=0, threads=1)

    def refuse(*args: Any) -> int:
        gate.wait(10)
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "pwrite", refuse)
    with store:
        y = x.exp().sum()
    gate.set()
    while store.spill.queued:
        time.sleep(0.001)
    with pytest.warns(StoreWarning, match=r"write of 16384 bytes .* failed: .*Input/output error"):
        y.backward()
    assert (x.grad == x.exp()).all()
    with pytest.raises(StoreError, match="Input/output error"), store:
        pass


def test_stores_that_store_nothing_say_so() -> None:
    x = leaf()
    store = stores.cpu(min_bytes="1 MiB")
    with pytest.warns(
        StoreWarning, match=r"cpu\(min_bytes=1048576\).*stored nothing: 1 tensors were smaller .* 16384 bytes"
    ):
        with store:
            (x * 2).exp()
    with store:  # once
        (x * 2).exp()
    with pytest.warns(StoreWarning, match="no operator saved a tensor"), stores.cpu():
        x + 1
    with torch.no_grad(), stores.cpu():
        x.exp()
    with pytest.warns(StoreWarning, match="2 were parameters"), stores.cpu():
        x @ x


def test_representations(tmp_path: Path) -> None:
    assert repr(stores.cpu()) == "<stores.cpu(min_bytes=1024): nothing stored yet>"
    store = stores.disk(tmp_path, memory="1 MiB", operator="exp", min_bytes=0)
    with store:
        leaf().exp()
    assert (
        repr(store)
        == f"<stores.disk('{tmp_path}', memory=1.00 MiB, min_bytes=0, operator='exp'): 1 tensors, 16.00 KiB>"
    )
    store.memory = "2 MiB"
    assert store.memory == 2 << 20
    for wrong in (lambda: stores.compress("zip"), lambda: stores.compress("bf16", stochastic=True),
                  lambda: stores.recompute(limit=0), lambda: stores.disk("/no/such/place")):  # fmt: skip
        with pytest.raises((ValueError, StoreError)):
            wrong()


@pytest.mark.parametrize("store", [stores.cpu, lambda: stores.compress("lossless")])
def test_inputs_that_are_computed_again_are_not_stored_too(store: Any) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(*[nn.Sequential(nn.Linear(256, 256), nn.GELU()) for _ in range(4)])
    x = torch.randn(512, 256)

    def gradients(around: Any) -> list[Any]:
        model.zero_grad()
        with around:
            y = model(x)
        y.sum().backward()
        return [p.grad.numpy().copy() for p in model.parameters()]

    used = store()
    for one, another in zip(gradients(nullcontext()), gradients(used), strict=True):
        assert one.tobytes() == another.tobytes()
    assert used.stats()["tensors"] == 5  # what went into the first layer, and into each GELU


def test_warnings_are_of_the_users_line() -> None:
    model = stores.cpu(min_bytes="1 MiB")(torch.nn.Linear(2, 2))
    with pytest.warns(StoreWarning) as found:
        with stores.cpu(min_bytes="1 MiB"):
            leaf().exp()
        for _ in range(16):
            model(torch.ones(1, 2))
    assert len(found) == 2 and {warning.filename for warning in found} == {__file__}


def test_a_folder_in_memory_is_warned_of(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setattr("rushlight.stores.errors.kind_of", lambda mount: "tmpfs")
    with pytest.warns(StoreWarning, match=rf"stores.disk: {tmp_path} lies in memory \(tmpfs at .*saves none") as found:
        stores.disk(tmp_path)
    assert found[0].filename == __file__


@pytest.mark.parametrize("store", [lambda: stores.disk(min_bytes=0), stores.cpu, lambda: stores.compress("lossless"),
                                   stores.recompute])  # fmt: skip
def test_every_node_that_saved_what_was_changed_and_forgotten_is_refused(store):
    k, w, v = (torch.linspace(1, 2, 20_000).requires_grad_() for _ in range(3))
    with store():
        h = k * 3
        first, second = (w * h).sum(), (v * h).sum()
    h.zero_()
    del h
    for loss in (second, first):
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()
    assert w.grad is None and v.grad is None


@pytest.mark.parametrize("around", ["recompute", "cpu", "budget"])
def test_a_weight_that_was_given_other_memory_is_refused_as_without(around: str) -> None:
    """`set_` after forward: the gradient would be that of the new weight."""
    weight, x = torch.nn.Parameter(torch.rand(8)), torch.rand(4, 8, requires_grad=True)
    makers = {
        "recompute": torch.stores.recompute,
        "cpu": torch.stores.cpu,
        "budget": awake,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", torch.stores.StoreWarning)
        with makers[around]():
            loss = (x * weight).sum()
            with torch.no_grad():
                weight.set_(weight * 3)
            with pytest.raises(RuntimeError, match=r"modified by an inplace operation.*set_"):
                loss.backward()


@pytest.mark.parametrize("store", ["cpu", "disk", "recompute"])
def test_a_result_that_was_changed_and_forgotten_is_refused_inside_a_budget_too(store: str) -> None:
    with warnings.catch_warnings(), awake():
        warnings.simplefilter("ignore", StoreWarning)
        with getattr(stores, store)():
            loss = torch.randn(40, 300, requires_grad=True).sigmoid().mul_(3).sum()
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()


def test_what_cannot_run_inside_is_refused() -> None:
    with pytest.raises(TypeError, match=r"stores.recompute: expected a module or a function to run inside, got Tensor"):
        stores.recompute()(torch.ones(2))
