"""Logits that nobody looks at are not made: values, gradients, errors and hooks are as if they were."""

import contextlib
import copy
import gc
import pickle
import weakref

import numpy as np
import pytest

import rushlight as torch
from rushlight import memory
from rushlight.dispatch.keeping.unmade import Unmade
from rushlight.models.language import GPT
from rushlight.ops.linear.unmade_products import limits, looked

F = torch.nn.functional
CLASSES = 7


@pytest.fixture
def small(monkeypatch):
    """Every linear layer waits for a look."""
    looked.clear()
    monkeypatch.setattr(limits, "classes", 1)
    monkeypatch.setattr(limits, "nbytes", 0)


def at_once(monkeypatch):
    monkeypatch.setattr(limits, "classes", 1 << 60)


class Case:
    """Logits (10, 7) of an input that an operator made, unmade if `limits` allow."""

    def __init__(self, bias=False, lead=(10,)):
        torch.manual_seed(0)
        self.x = torch.randn(*lead, 4, dtype=torch.float64, requires_grad=True)
        self.w = torch.randn(CLASSES, 4, dtype=torch.float64, requires_grad=True)
        self.b = torch.randn(CLASSES, dtype=torch.float64, requires_grad=True) if bias else None
        self.y = torch.randint(0, CLASSES, lead)
        self.h = self.x * 1.5
        self.z = F.linear(self.h, self.w, self.b)

    @property
    def unmade(self):
        return type(self.z) is Unmade

    @property
    def values(self):
        found = self.h.detach().numpy() @ self.w.detach().numpy().T
        return found if self.b is None else found + self.b.detach().numpy()

    def slope(self):
        """The gradient of the mean loss by the logits."""
        e = np.exp(self.values)
        p = e / e.sum(1, keepdims=True)
        p[np.arange(10), self.y.numpy()] -= 1
        return p / 10

    def gradients(self):
        return [t.grad.numpy() for t in (self.x, self.w, self.b) if t is not None]


def close(a, b):
    np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


FORMS = {
    "rows": lambda z, y, k: F.cross_entropy(z.view(-1, z.size(-1)), y.view(-1), **k),
    "flatten": lambda z, y, k: F.cross_entropy(z.flatten(0, 1), y.flatten(), **k) * 3,
    "transpose": lambda z, y, k: F.cross_entropy(z.transpose(1, 2), y, **k),
    "permute": lambda z, y, k: torch.nn.CrossEntropyLoss(**k)(z.permute(0, 2, 1), y),
    "converted": lambda z, y, k: F.cross_entropy(z.double().contiguous().reshape(-1, CLASSES), y.reshape(-1), **k),
    "shifted": lambda z, y, k: F.cross_entropy(z[:, :-1].transpose(1, 2), y[:, 1:], **k),
    "shifted rows": lambda z, y, k: F.cross_entropy(z[:, :-1].reshape(-1, CLASSES), y[:, 1:].reshape(-1), **k),
    "a shifted copy": lambda z, y, k: F.cross_entropy(
        z[..., :-1, :].contiguous().view(-1, CLASSES), y[..., 1:].contiguous().view(-1), **k
    ),
    "shifted by functions": lambda z, y, k: F.cross_entropy(
        torch.flatten(torch.reshape(z[:, 1:], (1, -1, CLASSES)), 0, 1), y[:, :-1].flatten(), **k
    ),
    "a clone of a copy": lambda z, y, k: F.cross_entropy(
        z[:, ::2].clone()[:, 1:].to(z.dtype).flatten(0, 1), y[:, 1::2][:, 1:].flatten(), **k
    ),
    "a part": lambda z, y, k: F.cross_entropy(z[1], y[0], **k),
    "every other": lambda z, y, k: F.cross_entropy(z[:, ::2].permute(0, 2, 1), y[:, 1::2], **k),
    "twice": lambda z, y, k: F.cross_entropy(z[0], y[0], **k) + F.cross_entropy(z[1], y[1], **k) / 2,
}
OPTIONS = [{}, {"ignore_index": 3}, {"label_smoothing": 0.1}, {"reduction": "sum"}, {"weight": True}]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("bias", [False, True])
def test_losses_and_gradients_are_those_of_made_logits(monkeypatch, small, form, options, bias):
    options = {**options, "weight": torch.rand(CLASSES, dtype=torch.float64)} if "weight" in options else options
    late = Case(bias, (3, 300))
    loss = FORMS[form](late.z, late.y, options)
    loss.backward()
    assert late.unmade
    at_once(monkeypatch)
    usual = Case(bias, (3, 300))
    expected = FORMS[form](usual.z, usual.y, options)
    expected.backward()
    assert not usual.unmade
    assert repr(loss.grad_fn).split()[0] == repr(expected.grad_fn).split()[0]
    close(loss.detach().numpy(), expected.detach().numpy())
    for a, b in zip(late.gradients(), usual.gradients(), strict=True):
        close(a, b)


@pytest.mark.filterwarnings("ignore:.*stored nothing")
@pytest.mark.parametrize("form", FORMS)
def test_stores_do_not_look(monkeypatch, small, form):
    with torch.stores.recompute(min_bytes=0), torch.stores.compress("lossless", min_bytes=0):
        late = Case(True, (3, 300))
        loss = FORMS[form](late.z, late.y, {})
    loss.backward()
    assert late.unmade
    at_once(monkeypatch)
    usual = Case(True, (3, 300))
    FORMS[form](usual.z, usual.y, {}).backward()
    for a, b in zip(late.gradients(), usual.gradients(), strict=True):
        close(a, b)


PRODUCTS = {
    "@": lambda h, w: h @ w.T, "matmul": lambda h, w: torch.matmul(h, w.t()), "columns": lambda h, w: h @ w.T.contiguous(),
    "rows": lambda h, w: torch.matmul(h.flatten(0, 1), w.T), "kept columns": lambda h, w: h @ w.t().clone().detach().requires_grad_(),
}  # fmt: skip


@pytest.mark.parametrize("product", PRODUCTS)
def test_products_are_layers_too(monkeypatch, small, product):
    def run():
        case = Case(lead=(3, 300))
        z = PRODUCTS[product](case.h, case.w)
        assert z._view is None
        loss = F.cross_entropy(z.view(-1, CLASSES), case.y.flatten())
        loss.backward()
        return type(z), [loss.detach().numpy(), case.x.grad.numpy(), case.w.grad], repr(z.grad_fn).split()[0]

    late = run()
    at_once(monkeypatch)
    usual = run()
    assert late[0] is Unmade and usual[0] is torch.Tensor and late[2] == usual[2]
    for a, b in zip(late[1], usual[1], strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            close(np.asarray(a), np.asarray(b))


def test_shapes_and_places_in_the_graph_are_seen_without_making(small):
    case = Case()
    z = case.z
    view = z.view(2, 5, CLASSES)
    assert (z.shape, z.dtype, z.ndim, z.numel(), len(z)) == ((10, CLASSES), torch.float64, 2, 70, 10)
    assert z.requires_grad and not z.is_leaf and z.__class__ is torch.Tensor and view._base is z
    assert view.stride() == (35, 7, 1) and z.grad_fn is not None and type(view) is Unmade
    assert case.unmade
    np.testing.assert_array_equal(view.detach().numpy(), case.values.reshape(2, 5, CLASSES))
    assert type(z) is type(view) is torch.Tensor
    assert np.shares_memory(view.detach().numpy(), z.detach().numpy())


LOOKS = {
    "copy": lambda z: copy.deepcopy(z.detach()), "pickle": lambda z: pickle.loads(pickle.dumps(z.detach())),
    "argmax": lambda z: z.argmax(1), "repr": repr, "data": lambda z: z.data, "numpy": lambda z: z.numpy(force=True),
    "bytes": lambda z: z.untyped_storage().tolist(), "softmax": lambda z: torch.softmax(z, 1), "tolist": lambda z: z.tolist(),
    "item": lambda z: z.max().item(), "converted": lambda z: z.to(torch.float32), "chosen": lambda z: z[z > 0],
    "chunks": lambda z: torch.cat(z.chunk(2)), "sum": lambda z: z + 1, "flat": torch.flatten, "joined": lambda z: torch.cat([z, z]),
    "strided": lambda z: z.as_strided((3,), (2,)), "copied": lambda z: z.T.contiguous(), "reshaped": lambda z: z.T.reshape(-1),
    "row": lambda z: z[3].exp(), "column": lambda z: z[:, 2] * 2, "list": lambda z: z[[1, 2]], "iterated": lambda z: sum(z),
    "array": np.asarray, "alias": lambda z: torch.nn.Parameter(z.detach()), "set": lambda z: torch.empty(0).double().set_(z.detach()),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("look", LOOKS)
def test_who_looks_sees_the_values(monkeypatch, small, look):
    def seen(case):
        z = case.z.detach() if look == "array" else case.z
        found = LOOKS[look](z)
        return found.detach().numpy() if isinstance(found, torch.Tensor) else found

    late = Case()
    assert late.unmade
    found = seen(late)
    at_once(monkeypatch)
    np.testing.assert_array_equal(found, seen(Case()))


def test_it_can_be_given_another_class_saved_and_moved(small, tmp_path):
    class Named(torch.Tensor):
        pass

    case = Case()
    case.z.__class__ = Named
    assert type(case.z) is Named
    np.testing.assert_array_equal(case.z.detach().numpy(), case.values)
    case = Case()
    torch.save(case.z.detach(), tmp_path / "z")
    np.testing.assert_array_equal(torch.load(tmp_path / "z").numpy(), case.values)
    case = Case()
    assert case.z.detach_() is case.z and case.z.grad_fn is None
    np.testing.assert_array_equal(case.z.t_().numpy(), case.values.T)
    case = Case()
    np.testing.assert_array_equal(case.z.as_subclass(Named).detach().numpy(), case.values)
    assert type(copy.copy(Case().z)) is torch.Tensor and len({Case().z, case.z}) == 2


def test_values_are_those_of_when_it_was_computed(small):
    case = Case()
    expected = case.values
    with torch.no_grad():
        case.w.mul_(2)
        case.h.zero_()
    assert case.unmade
    np.testing.assert_array_equal(case.z.detach().numpy(), expected)


def test_a_storage_and_a_view_outlive_the_tensor(small):
    case = Case()
    expected, storage, view = case.values, case.z.untyped_storage(), case.z.view(-1)
    del case.z
    np.testing.assert_array_equal(np.array(storage.tolist(), np.uint8).view(np.float64), expected.reshape(-1))
    np.testing.assert_array_equal(view.detach().numpy(), expected.reshape(-1))


@pytest.mark.parametrize("change", ["weight", "input", "target"])
def test_changes_between_forward_and_backward_are_refused(small, change):
    case = Case()
    loss = F.cross_entropy(case.z, case.y)
    with torch.no_grad():
        {"weight": case.w, "input": case.h, "target": case.y}[change].mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace"):
        loss.backward()


def test_a_copy_keeps_its_values_when_what_it_was_copied_from_changes(small):
    case = Case(lead=(2, 5))
    copy_ = case.z[:, :-1].reshape(-1, CLASSES)
    assert type(copy_) is Unmade and copy_._base is None and case.unmade
    case.z.detach().mul_(2)
    np.testing.assert_array_equal(copy_.detach().numpy(), case.values[:, :-1].reshape(-1, CLASSES))
    np.testing.assert_array_equal(case.z.detach().numpy(), case.values * 2)


@pytest.mark.parametrize("look", ["source", "copy", "before"])
def test_second_derivatives_of_copies(monkeypatch, small, look):
    def run():
        case = Case(lead=(2, 5))
        z = case.z[:, :-1].contiguous().view(-1, CLASSES)
        loss = F.cross_entropy(z, case.y[:, 1:].flatten())
        if look == "source":
            case.z.sum()
        elif look == "copy":
            z.sum()
        (g,) = torch.autograd.grad(loss, case.w, create_graph=True)
        (slope,) = torch.autograd.grad(loss, z, retain_graph=True)
        (g * g).sum().backward()
        return [g.detach().numpy(), slope.detach().numpy(), *case.gradients()]

    late = run()
    at_once(monkeypatch)
    for a, b in zip(late, run(), strict=True):
        close(a, b)


@pytest.mark.parametrize(
    "rows",
    [
        lambda z: z[:, 1:].transpose(1, 2).contiguous(),
        lambda z: z[..., 1:].contiguous(),
        lambda z: z.transpose(1, 2).flatten(1),
    ],
)
def test_copies_of_no_rows_are_made(small, rows):
    case = Case(lead=(2, 5))
    found = rows(case.z)
    assert not case.unmade and type(found) is torch.Tensor
    np.testing.assert_array_equal(found.detach().numpy(), rows(torch.from_numpy(case.values)).numpy())


def test_a_second_backward_is_refused_or_kept_for(small):
    case = Case()
    loss = F.cross_entropy(case.z, case.y)
    first = torch.autograd.grad(loss, (case.x, case.w), retain_graph=True)
    second = torch.autograd.grad(loss * 3, (case.x, case.w), retain_graph=True)
    for a, b in zip(first, second, strict=True):
        close(3 * a.numpy(), b.numpy())
    loss.backward()
    close(case.w.grad.numpy(), first[1].numpy())
    with pytest.raises(RuntimeError, match="second time"):
        loss.backward()


def test_the_gradient_of_the_logits_can_be_had(small):
    case = Case()
    (found,) = torch.autograd.grad(F.cross_entropy(case.z, case.y), case.z, retain_graph=True)
    close(found.numpy(), case.slope())
    seen = []
    loss = F.cross_entropy(case.z.view(2, 5, CLASSES)[:, 1:].transpose(1, 2), case.y.view(2, 5)[:, 1:])
    case.z.register_hook(lambda g: seen.append(g.clone()))
    case.z.retain_grad()
    loss.backward()
    assert case.unmade
    expected = case.slope() * 10 / 8
    expected[::5] = 0
    close(seen[0].numpy(), expected)
    close(case.z.grad.numpy(), expected)
    close(case.x.grad.numpy(), 1.5 * expected @ case.w.detach().numpy())


def test_gradients_of_what_was_looked_at_since(small):
    case = Case()
    loss = F.cross_entropy(case.z, case.y)
    assert case.z.argmax(1).shape == (10,)
    (found,) = torch.autograd.grad(loss, case.z, retain_graph=True)
    close(found.numpy(), case.slope())
    loss.backward()
    close(case.w.grad.numpy(), case.slope().T @ case.h.detach().numpy())


def test_who_is_looked_at_after_the_loss_is_made_at_once_next_time(small):
    case = Case()
    F.cross_entropy(case.z, case.y).backward()
    case.z.argmax(1)
    assert type(F.linear(case.h, case.w)) is torch.Tensor
    assert type(F.linear(case.h, case.w.detach().clone().requires_grad_())) is Unmade


def test_another_loss_of_the_same_logits(monkeypatch, small):
    def total(z, y):
        return (
            F.cross_entropy(z, y) + torch.logsumexp(z, 1).pow(2).mean() + F.cross_entropy(z, y, reduction="none").max()
        )

    late = Case()
    total(late.z, late.y).backward()
    at_once(monkeypatch)
    usual = Case()
    total(usual.z, usual.y).backward()
    for a, b in zip(late.gradients(), usual.gradients(), strict=True):
        close(a, b)


def test_second_derivatives(monkeypatch, small):
    def second():
        case = Case()
        (first,) = torch.autograd.grad(F.cross_entropy(case.z, case.y), case.x, create_graph=True)
        return torch.autograd.grad((first**2).sum(), case.w)[0].numpy()

    late = second()
    at_once(monkeypatch)
    close(late, second())


def test_forward_mode_and_vmap_of_what_is_not_made(small):
    case = Case()
    z = case.z.detach()
    direction = torch.ones_like(z)
    value, slope = torch.func.jvp(lambda t: F.cross_entropy(t, case.y), (z,), (direction,))
    close(float(slope), float((torch.tensor(case.slope()) * direction).sum()))
    case = Case()
    each = torch.func.vmap(lambda row, y: F.cross_entropy(row, y))(case.z, case.y)
    close(float(each.mean().detach()), float(value))


def test_no_row_counts(monkeypatch, small):
    def run():
        case = Case()
        loss = F.cross_entropy(case.z, torch.full((10,), -100))
        loss.backward()
        return [loss.detach().numpy(), *case.gradients()]

    late = run()
    at_once(monkeypatch)
    for a, b in zip(late, run(), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("wrong", [CLASSES, -1])
def test_errors_are_those_of_cross_entropy(small, wrong):
    case = Case()
    with pytest.raises(IndexError, match=f"Target {wrong} is out of bounds"):
        F.cross_entropy(case.z, torch.full((10,), wrong))
    with pytest.raises(ValueError, match="to match target batch_size"):
        F.cross_entropy(case.z, torch.zeros(9, dtype=torch.int64))
    with pytest.raises(RuntimeError, match="expected target dtype to be Long"):
        F.cross_entropy(case.z, torch.zeros(10, dtype=torch.int32))


def test_frozen_operands_get_nothing(small):
    case = Case()
    z = F.linear(case.h.detach(), case.w)
    F.cross_entropy(z, case.y).backward()
    assert type(z) is Unmade and case.x.grad is None
    close(case.w.grad.numpy(), case.slope().T @ case.h.detach().numpy())
    z = F.linear(case.h, case.w.detach())
    F.cross_entropy(z, case.y).backward()
    close(case.x.grad.numpy(), 1.5 * case.slope() @ case.w.detach().numpy())


def test_unusual_modes_make_at_once(small):
    case = Case()
    with torch.autograd.graph.save_on_cpu():
        assert type(F.linear(case.h, case.w)) is torch.Tensor
    with torch.no_grad():
        assert type(F.linear(case.h, case.w)) is torch.Tensor
    assert memory.recompute_cheap(False)
    try:
        assert type(F.linear(case.h, case.w)) is torch.Tensor
    finally:
        memory.recompute_cheap(True)
    weight = torch.randn(5000, 4, dtype=torch.float64, requires_grad=True)
    assert type(F.linear(case.h, weight)) is Unmade
    seen = weight.detach().numpy()  # who may change it unseen
    assert type(F.linear(case.h, weight)) is torch.Tensor
    assert seen.shape == (5000, 4)


def test_changes_that_nobody_tells_of(small):
    case = Case()
    expected = case.values
    case.w.detach().numpy()[:] = 0  # small: it was copied
    np.testing.assert_array_equal(case.z.detach().numpy(), expected)
    weight = torch.randn(5000, 4, dtype=torch.float64, requires_grad=True)
    z = F.linear(case.h, weight)
    expected = case.h.detach().numpy() @ weight.detach().numpy().T
    weight.detach().numpy()[:] = 0  # large: it is copied when NumPy is shown it
    np.testing.assert_array_equal(z.detach().numpy(), expected)


def test_they_go_by_reference_counts(small):
    gc.disable()
    try:
        case = Case()
        tensor, view = weakref.ref(case.z), weakref.ref(case.z.view(5, -1))
        loss = F.cross_entropy(case.z.view(-1, CLASSES), case.y)
        del case.z
        assert view() is None
        assert tensor() is not None  # of the graph of the loss
        del loss
        assert tensor() is None
    finally:
        gc.enable()


VOCABULARY = 40_000


def step_of_gpt(tokens, model, shifted=False):
    """The loss as nanoGPT has it, or of shifted logits as transformers have it: the logits are given back, too."""
    if shifted:
        logits = model(tokens)
        rows = logits[..., :-1, :].contiguous().view(-1, logits.size(-1))
        return logits, F.cross_entropy(rows, tokens[..., 1:].contiguous().view(-1))
    logits = model(tokens[:, :-1])
    return logits, F.cross_entropy(logits.view(-1, logits.size(-1)), tokens[:, 1:].reshape(-1))


@pytest.fixture(scope="module")
def gpt():
    torch.manual_seed(0)
    return GPT(VOCABULARY, 129, 1, 32, 2), torch.randint(0, VOCABULARY, (8, 129))


@pytest.mark.parametrize(
    ("shifted", "stores"), [(False, ""), (True, ""), (False, "recompute"), (True, "recompute disk")]
)
def test_a_step_never_holds_all_logits(gpt, shifted, stores):
    model, tokens = gpt
    whole = 8 * 128 * VOCABULARY * 4
    peaks, grads = [], []
    for waits in (True, False):
        memory.recompute_cheap(waits)
        try:
            model.zero_grad()
            before = memory.current()
            memory.reset_peak()
            with contextlib.ExitStack() as around:
                for store in stores.split():
                    around.enter_context(getattr(torch.stores, store)())
                _, loss = step_of_gpt(tokens, model, shifted)
            loss.backward()
            peaks.append(memory.peak() - before)
            grads.append(model.token.weight.grad.numpy().copy())
            del _, loss
        finally:
            memory.recompute_cheap(True)
    np.testing.assert_allclose(grads[0], grads[1], rtol=1e-3, atol=1e-6)
    assert peaks[0] < 0.6 * whole < 1.02 * whole < peaks[1]


@pytest.mark.parametrize("shifted", [False, True])
def test_estimates_and_recordings_know(gpt, shifted):
    model, tokens = gpt
    optimizer = torch.optim.AdamW(model.parameters())
    given = tokens if shifted else tokens[:, :-1]

    def loss(out):
        out = out[:, :-1].reshape(-1, out.size(-1)) if shifted else out.flatten(0, 1)
        return F.cross_entropy(out, tokens[:, 1:].flatten())

    def step():
        loss(model(given)).backward()
        optimizer.step()
        optimizer.zero_grad()

    estimated = memory.estimate(model, given, optimizer=optimizer, loss=loss).peak
    step()
    memory.reset_peak()
    before = memory.current()
    step()
    measured = memory.peak() - before
    held = sum(p.nbytes for p in model.parameters()) * 3
    assert abs(estimated - held - measured) < 0.05 * estimated
    memory.record_history()
    try:
        step()
    finally:
        memory.record_history(enabled=None)
    assert memory.recording().peak()[0] - before < 1.05 * measured


class Sums(torch.overrides.TorchFunctionMode):
    """Writes down the names of functions, and the sum of the tensor that each is given."""

    def __init__(self, look):
        self.look, self.log = look, []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        name = torch.overrides.resolve_name(func)
        self.log.append(
            (name, float(args[0].detach().sum()) if self.look and isinstance(args[0], torch.Tensor) else None)
        )
        return func(*args, **(kwargs or {}))


CALLS = [lambda z: z.view(5, -1), lambda z: z.shape, lambda z: z[1:], lambda z: len(z), lambda z: z.double(), lambda z: z.clone(),
         lambda z: z.is_contiguous(), lambda z: z.transpose(0, 1), lambda z: z.dtype, lambda z: z.contiguous()]  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
def test_a_mode_sees_the_numbers_of_logits(call, small):
    """It was asked while their outline was shown: it saw zeros."""
    case = Case()
    with Sums(look=True) as mode:
        call(case.z)
    assert mode.log and all(total == pytest.approx(case.values.sum()) for _, total in mode.log)


@pytest.mark.parametrize("call", CALLS)
def test_a_mode_that_does_not_look_leaves_logits_unmade(call, small):
    with Sums(look=False) as mode, Sums(look=False) as inner:
        case = Case()
        before = len(mode.log)
        assert type(case.z) is Unmade
        found = call(case.z)
        assert type(case.z) is Unmade
    assert len(mode.log) == len(inner.log) > before
    if isinstance(found, torch.Tensor) and found.dtype == torch.float64:
        assert type(found) is Unmade
        wanted = call(torch.from_numpy(case.values))
        assert np.allclose(found.detach().numpy(), wanted.numpy())


def test_logits_of_what_has_a_tangent_are_made(small):
    forward_ad = torch.autograd.forward_ad
    case = Case()
    with forward_ad.dual_level():
        whole = forward_ad.make_dual(torch.ones(10, 4, dtype=torch.float64), torch.ones(10, 4, dtype=torch.float64))
        for x, w in ((whole, case.w), (whole[1:], case.w), (case.h, whole[:7])):
            z = F.linear(x, w)
            tangent = forward_ad.unpack_dual(z).tangent
            moved = (
                F.linear(torch.ones_like(x), w) if w is case.w else F.linear(x, torch.ones(7, 4, dtype=torch.float64))
            )
            assert type(z) is not Unmade and np.allclose(tangent.detach().numpy(), moved.detach().numpy())
        assert type(F.linear(case.h, case.w)) is Unmade


@pytest.mark.parametrize("rows", [4, 20_000])
@pytest.mark.parametrize("when", ["before the loss", "after it", "after it, by other memory"])
@pytest.mark.parametrize("what", ["weight", "input"])
def test_operands_that_data_changes_are_seen_in_backward(monkeypatch, small, what, when, rows):
    """Small ones are copied at once, large ones when they change: the gradient is that of what was saved, as it is now."""
    found = []
    for unmade in (True, False):
        if not unmade:
            at_once(monkeypatch)
        torch.manual_seed(0)
        x = torch.randn(rows, 4, dtype=torch.float64, requires_grad=True)
        w = torch.randn(CLASSES if what == "input" else rows, 4, dtype=torch.float64, requires_grad=True)
        x = x if what == "input" else x[:4].detach().requires_grad_()
        h = x * 1.5
        z, changed = F.linear(h, w), w if what == "weight" else h
        assert (type(z) is Unmade) == unmade
        if when == "before the loss":
            changed.data.mul_(3)
        loss = F.cross_entropy(z, torch.arange(len(z)) % CLASSES)
        if when == "after it":
            changed.data.mul_(3)
        elif when != "before the loss":
            changed.data = changed.data * 3
        loss.backward()
        found.append([loss.detach(), x.grad, w.grad])
    for one, other in zip(*found, strict=True):
        close(one.numpy(), other.numpy())


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_linear_cross_entropy_finds_its_gradients_likewise(small, reduction):
    case, other = Case(bias=True), Case(bias=True)
    loss = F.linear_cross_entropy(case.h, case.w, case.y, linear_bias=case.b, reduction=reduction, label_smoothing=0.1)
    expected = F.cross_entropy(other.z.clone(), other.y, reduction=reduction, label_smoothing=0.1)
    close(loss.detach().numpy(), expected.detach().numpy())
    products = [node for node, _ in loss.grad_fn.next_functions if node is not None]
    assert ("Linear" in loss.grad_fn.name()) == (reduction == "none"), loss.grad_fn
    assert products
    for each in (loss, expected):
        (each * 2).sum().backward()
    for a, b in zip(case.gradients(), other.gradients(), strict=True):
        close(a, b)


def test_second_gradients_of_linear_cross_entropy(small):
    case = Case()
    x, w = case.x.detach().requires_grad_(), case.w.detach().requires_grad_()
    assert torch.autograd.gradgradcheck(lambda x, w: F.linear_cross_entropy(x, w, case.y), (x, w))


@pytest.mark.parametrize("reduction", ["mean", "none"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("waits", [True, False])
def test_losses_of_linear_cross_entropy_are_float32_in_autocast(monkeypatch, small, waits, dtype, reduction):
    if not waits:
        at_once(monkeypatch)
    x, w = (t.detach().float().requires_grad_() for t in (Case().x, Case().w))
    with torch.autocast("cpu", dtype=dtype):
        loss = F.linear_cross_entropy(x, w, Case().y, reduction=reduction)
        expected = F.cross_entropy(F.linear(x, w), Case().y, reduction=reduction)
    assert loss.dtype is expected.dtype is torch.float32
    torch.testing.assert_close(loss, expected, rtol=2e-2, atol=2e-2)
    grads = [torch.autograd.grad(each.sum(), (x, w), create_graph=True) for each in (loss, expected)]
    seconds = [torch.autograd.grad(sum(g.square().sum() for g in each), (x, w)) for each in grads]
    torch.testing.assert_close([g.detach() for g in grads[0]], [g.detach() for g in grads[1]], rtol=5e-2, atol=5e-2)
    torch.testing.assert_close(seconds[0], seconds[1], rtol=0.1, atol=0.1)


def test_linear_cross_entropy_refuses_smoothing_that_is_no_part():
    with pytest.raises(RuntimeError, match=r"linear_cross_entropy: label_smoothing must be between 0\.0 and 1\.0"):
        F.linear_cross_entropy(Case().x, Case().w, Case().y, label_smoothing=2)
