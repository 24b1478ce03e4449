"""Optimizers: groups, state, checkpoints, hooks, and steps that need no memory."""

from __future__ import annotations

import copy
import gc
import inspect
import pickle
import tracemalloc
import weakref

import numpy as np
import pytest

import rushlight as torch
from rushlight.optim import optimizer as base
from rushlight.tensor import wrap

OPTIM = torch.optim
STEPPERS = ["SGD", "Adam", "AdamW", "Adagrad", "RMSprop", "Adadelta", "NAdam", "RAdam", "Adamax", "ASGD", "Rprop"]
EVERY = [*STEPPERS, "Adafactor", "Muon", "LBFGS", "Lion", "Adam8bit", "AdamW8bit", "Lion8bit", "SGD8bit"]
OPTIONS = {
    "SGD": [{}, {"momentum": 0.9}, {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}, {"maximize": True}],
    "Adam": [{}, {"amsgrad": True, "weight_decay": 0.1}, {"maximize": True}],
    "AdamW": [{}, {"amsgrad": True}],
    "RMSprop": [{}, {"momentum": 0.9, "centered": True, "weight_decay": 0.1}],
    "NAdam": [{}, {"decoupled_weight_decay": True, "weight_decay": 0.1}],
    "RAdam": [{}, {"decoupled_weight_decay": True, "weight_decay": 0.1}],
    "ASGD": [{}, {"t0": 2, "lambd": 0.1}],
}
CASES = [(name, options) for name in EVERY for options in OPTIONS.get(name, [{}])]


def parameter(values, dtype=np.float64):
    return torch.nn.Parameter(wrap(np.array(values, dtype)))


def make(name, params, **options):
    return getattr(OPTIM, name)(params, **options)


def step(optimizer, *params, grads=None):
    def closure():
        for i, p in enumerate(params):
            p.grad = wrap(np.asarray(p._array * 2 if grads is None else grads[i]).astype(p._array.dtype))
        return torch.ones(())

    return optimizer.step(closure)


# Groups --------------------------------------------------------------------------------------------


def test_groups_and_their_options():
    p, q, r = parameter([1.0]), parameter([1.0]), parameter([1.0])
    o = OPTIM.SGD([{"params": p}, {"params": (x for x in [q]), "lr": 0.5}], lr=0.1, momentum=0.9)
    o.add_param_group({"params": [r], "momentum": 0.0})
    assert [g["lr"] for g in o.param_groups] == [0.1, 0.5, 0.1]
    assert [g["momentum"] for g in o.param_groups] == [0.9, 0.9, 0.0]
    step(o, p, q, r)
    assert [x.item() for x in (p, q, r)] == [0.8, 0.0, 0.8]
    assert set(o.state) == {p, q}


def test_names():
    p, q = parameter([1.0]), parameter([1.0])
    o = OPTIM.SGD([("a", p), ("b", q)], lr=0.1)
    assert o.param_groups[0]["param_names"] == ["a", "b"]
    assert o.state_dict()["param_groups"][0]["param_names"] == ["a", "b"]
    o.load_state_dict(OPTIM.SGD([p, q], lr=0.2).state_dict())
    assert o.param_groups[0]["param_names"] == ["a", "b"] and o.param_groups[0]["lr"] == 0.2
    with pytest.raises(ValueError, match="with/without names"):
        OPTIM.SGD([("a", p), q])
    with pytest.raises(ValueError, match="without names to the optimizer"):
        o.add_param_group({"params": [parameter([1.0])]})


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        (lambda p: [], ValueError, "empty parameter list"),
        (lambda p: p, TypeError, "iterable of Tensors or dicts"),
        (lambda p: [p, 3], TypeError, "one of the params is int"),
        (lambda p: [p * 2], ValueError, "non-leaf"),
        (lambda p: [{"params": {p}}], TypeError, "ordered collections"),
        (lambda p: [{"params": [p]}, {"params": [p]}], ValueError, "more than one parameter group"),
        (lambda p: [{"lr": 1}], KeyError, "params"),
        (lambda p: None, TypeError, "not iterable"),
    ],
)
def test_refused_parameters(params, error, message):
    with pytest.raises(error, match=message):
        OPTIM.SGD(params(parameter([1.0])), lr=0.1)


def test_other_refusals():
    p = parameter([1.0])
    o = OPTIM.SGD([p])
    with pytest.raises(TypeError, match="param_group must be a dict"):
        o.add_param_group([p])
    with pytest.warns(UserWarning, match="duplicate parameters"):
        OPTIM.SGD([p, p])
    with pytest.raises(NotImplementedError, match="step"):
        OPTIM.Optimizer([p], {"lr": 1}).step()

    class Needs(OPTIM.Optimizer):
        def __init__(self, params):
            super().__init__(params, {"lr": base.required})

    with pytest.raises(ValueError, match="required optimization parameter lr"):
        Needs([p])
    assert Needs([{"params": p, "lr": 1}]).param_groups[0]["lr"] == 1
    assert copy.deepcopy(base.required) is pickle.loads(pickle.dumps(base.required)) is base.required
    with pytest.raises(AttributeError, match="nonsense"):
        OPTIM.nonsense


WRONG = [
    ("lr", -1.0, "Invalid learning rate: -1.0"),
    ("lr", wrap(np.ones(2)), "1-element"),
    ("eps", -1.0, "epsilon"),
    ("weight_decay", -1.0, "weight_decay"),
    ("betas", (1.0, 0.5), "index 0"),
    ("betas", (0.5, 1.0), "index 1"),
    ("momentum", -1.0, "momentum"),
    ("rho", 1.5, "rho"),
    ("alpha", -1.0, "alpha"),
    ("lr_decay", -1.0, "lr_decay"),
    ("initial_accumulator_value", -1.0, "initial_accumulator_value"),
    ("momentum_decay", -1.0, "momentum_decay"),
    ("etas", (2.0, 3.0), "eta values"),
]


@pytest.mark.parametrize("option", ["lr", "weight_decay", "eps"])
def test_text_that_looks_like_a_number_is_refused_by_the_options_name(option: str) -> None:
    with pytest.raises(TypeError, match=f"^{option}: expected a number, got the text '1e-3'"):
        OPTIM.Adam([torch.ones(2, requires_grad=True)], **{option: "1e-3"})


def has(name, option):
    return option in inspect.signature(getattr(OPTIM, name)).parameters and (name, option) != ("ASGD", "alpha")


@pytest.mark.parametrize(
    ("name", "option", "value", "message"),
    [(name, *wrong) for name in STEPPERS for wrong in WRONG if has(name, wrong[0])],
)
def test_refused_options(name, option, value, message):
    with pytest.raises(ValueError, match=message):
        make(name, [parameter([1.0])], **{option: value})


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "Adagrad"])
def test_ways_of_stepping(name):
    p = parameter([1.0])
    with pytest.raises(RuntimeError, match="does not support `differentiable`"):
        make(name, [p], fused=True, differentiable=True)
    with pytest.raises(RuntimeError, match="cannot be `True` together"):
        make(name, [p], fused=True, foreach=True)
    values = []
    for options in ({}, {"fused": True}, {"foreach": True}, {"foreach": False}):
        q = parameter([1.0, -2.0])
        o = make(name, [q], lr=0.1, **options)
        step(o, q)
        step(o, q)
        values.append(q.tolist())
    assert all(v == values[0] for v in values)


@pytest.mark.parametrize("name", ["Adam", "AdamW", "RMSprop", "Adadelta", "NAdam", "RAdam", "Adamax", "ASGD", "Rprop"])
def test_capturable_is_refused_on_the_cpu(name):
    p = parameter([1.0])
    o = make(name, [p], capturable=True)
    o.step()
    p.grad = torch.ones(1, dtype=torch.float64)
    with pytest.raises(AssertionError, match="capturable=False"):
        o.step()


@pytest.mark.parametrize("name", ["Adam", "AdamW"])
def test_a_fused_step_does_not_ask_whether_it_can_be_captured(name):
    """As in PyTorch."""
    p, q = parameter([1.0]), parameter([1.0])
    for parameter_, options in ((p, {"capturable": True, "fused": True}), (q, {})):
        parameter_.grad = torch.ones(1, dtype=torch.float64)
        make(name, [parameter_], **options).step()
    assert p.equal(q)


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "Adagrad"])
def test_complex_parameters_are_refused_by_a_fused_step(name):
    p = torch.ones(1, dtype=torch.complex128, requires_grad=True)
    o = make(name, [p], fused=True)
    o.step()
    p.grad = torch.ones_like(p)
    with pytest.raises(RuntimeError, match="floating point Tensors"):
        o.step()
    assert p.tolist() == [1.0]


def test_complex_parameters_are_refused_by_sparse_adam():
    real, p = (torch.ones(1, dtype=kind, requires_grad=True) for kind in (torch.float32, torch.complex64))
    with pytest.raises(ValueError, match=r"Complex params at indices \[\[0, 1\]\]"):
        torch.optim.SparseAdam([real, p])


def test_tensors_as_options():
    for options in ({"lr": wrap(np.array(0.1))}, {"lr": wrap(np.array([0.1]))}):
        values = []
        for name in STEPPERS:
            p, q = parameter([1.0, -2.0]), parameter([1.0, -2.0])
            a, b = make(name, [p], lr=0.1), make(name, [q], **options)
            for o, x in ((a, p), (b, q)):
                step(o, x)
                step(o, x)
            values.append((p.tolist(), q.tolist()))
        assert all(np.allclose(a, b, rtol=1e-12) for a, b in values)
    for options in ({"lr": wrap(np.array(0.1))}, {"betas": (wrap(np.array(0.9)), wrap(np.array(0.99)))}):
        with pytest.raises(ValueError, match="not supported for capturable=False and foreach=True"):
            OPTIM.Adam([parameter([1.0])], foreach=True, **options)
    with pytest.raises(ValueError, match="both floats or both Tensors"):
        OPTIM.Adam([parameter([1.0])], betas=(0.9, wrap(np.array(0.99))))
    with pytest.raises(ValueError, match=r"betas\[0\] must be 1-element"):
        OPTIM.Adam([parameter([1.0])], betas=(wrap(np.array([0.9, 0.9])),) * 2)


def test_refusals_of_the_special_ones():
    p = parameter(np.ones((2, 2, 2)))
    with pytest.raises(ValueError, match=r"Muon only supports 2D parameters.*2, 2, 2"):
        OPTIM.Muon([p])
    for options in ({"adjust_lr_fn": "x"}, {"momentum": -1}, {"lr": -1}, {"weight_decay": -1}):
        with pytest.raises(ValueError):
            OPTIM.Muon([parameter(np.ones((2, 2)))], **options)
    o, m = OPTIM.Muon([parameter(np.ones((2, 2)))], ns_steps=100), parameter(np.ones((2, 2)))
    o = OPTIM.Muon([m], ns_steps=100)
    with pytest.raises(ValueError, match="less than 100"):
        step(o, m)
    for options in ({"eps": (-1.0, 0.1)}, {"eps": (None, -1)}, {"d": 0.5}, {"beta2_decay": 0.5}, {"weight_decay": -1}):
        with pytest.raises(ValueError):
            OPTIM.Adafactor([p], **options)
    for name in ("Muon", "Adafactor"):
        c = parameter(np.ones((2, 2)), np.complex64)
        with pytest.raises(RuntimeError, match="complex"):
            step(make(name, [c]), c)
    with pytest.raises(ValueError, match="parameter groups"):
        OPTIM.LBFGS([{"params": [p]}, {"params": [parameter([1.0])]}])
    with pytest.raises(RuntimeError, match="strong_wolfe"):
        step(OPTIM.LBFGS([p], line_search_fn="x"), p)
    with pytest.raises(TypeError, match="closure"):
        OPTIM.LBFGS([p]).step()
    shared = OPTIM.Adagrad([p])
    shared.share_memory()
    assert shared.state[p]["sum"].is_shared()


# Steps ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "options"), CASES)
def test_every_optimizer_finds_a_minimum(name, options):
    p = parameter([[1.0, -2.0], [0.5, 3.0]])
    o = make(name, [p], **{"lr": 0.05, **options})
    sign = -1 if options.get("maximize") else 1
    before = (p._array**2).sum()
    for _ in range(20):
        step(o, p, grads=[sign * 2 * p._array])
    assert (p._array**2).sum() < before


@pytest.mark.parametrize(("name", "options"), CASES)
def test_layouts_give_the_same_numbers(name, options):
    """Transposed, strided and blocked parameters step as contiguous small ones do."""
    rng = np.random.default_rng(0)
    start, grad = rng.standard_normal((2, 6, 4))
    plain = parameter(start)
    others = [np.asfortranarray(start), np.zeros((12, 8))[::2, ::2], np.zeros((6, 4))[::-1]]
    o = make(name, [plain], **{"lr": 0.05, **options})
    for _ in range(3):
        step(o, plain, grads=[grad])
    for array in others:
        array[...] = start
        p = torch.nn.Parameter(wrap(array))
        again = make(name, [p], **{"lr": 0.05, **options})
        for _ in range(3):
            step(again, p, grads=[grad])
        assert np.allclose(p._array, plain._array, rtol=1e-12)
        assert p._array is array or np.shares_memory(p._array, array)


def test_blocks_do_not_show(monkeypatch):
    from rushlight.kernels.reference import optim as blocks

    rng = np.random.default_rng(0)
    start, grad = rng.standard_normal((2, 40, 30))
    for name, options in CASES:
        results = []
        for size in (1 << 20, 37):
            monkeypatch.setattr(blocks, "BLOCK", size)
            for array in (start.copy(), np.asfortranarray(start)):
                p = torch.nn.Parameter(wrap(array))
                o = make(name, [p], **{"lr": 0.05, **options})
                for _ in range(3):
                    step(o, p, grads=[grad])
                results.append(p._array)
        assert all(np.allclose(r, results[0], rtol=1e-9) for r in results), name


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_halves(name, dtype):
    """16-bit parameters step as float32 ones, rounded."""
    start = np.array([[1.0, -2.0], [0.5, 3.0]])
    half, single = parameter(start, dtype.numpy), parameter(start, np.float32)
    for p in (half, single):
        o = make(name, [p], lr=0.05)
        for _ in range(3):
            step(o, p, grads=[start / 4])
    assert half.dtype is dtype
    assert np.allclose(half._array.astype(np.float32), single._array, atol=0.06 if dtype is torch.bfloat16 else 0.01)


@pytest.mark.parametrize("name", [*STEPPERS, "LBFGS"])
def test_complex_parameters_are_pairs_of_reals(name):
    rng = np.random.default_rng(0)
    start, grad = rng.standard_normal((2, 5, 2))
    real, both = parameter(start), parameter(start.view(np.complex128)[:, 0].copy(), np.complex128)
    for p, g in ((real, grad), (both, grad.view(np.complex128)[:, 0])):
        o = make(name, [p], lr=0.05)
        for _ in range(4):
            step(o, p, grads=[g])
    assert np.allclose(both._array, real._array.view(np.complex128)[:, 0], rtol=1e-12)


@pytest.mark.parametrize("name", EVERY)
def test_parameters_without_gradient_stay(name):
    p, q = parameter(np.ones((2, 2))), parameter(np.ones((2, 2)))
    o = make(name, [p, q], lr=0.1)
    step(o, p)
    assert q.tolist() == [[1.0, 1.0], [1.0, 1.0]] or name == "LBFGS"
    assert q not in o.state or name == "Adagrad"


@pytest.mark.parametrize("name", EVERY)
def test_steps_count_as_changes(name):
    p = parameter(np.ones((2, 2)))
    y = (p * p).sum()
    step(make(name, [p], lr=0.1), p)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


@pytest.mark.parametrize("name", STEPPERS)
def test_no_elements_no_dimensions_and_special_values(name):
    empty, scalar, special = parameter(np.ones((0, 3))), parameter(1.0), parameter([np.inf, np.nan, 0.0, 1e-300])
    o = make(name, [empty, scalar, special], lr=0.1)
    for _ in range(2):
        step(o, empty, scalar, special, grads=[np.ones((0, 3)), np.array(0.5), np.array([0.0, 1.0, np.inf, 0.0])])
    assert scalar.shape == () and scalar.item() < 1


@pytest.mark.parametrize("name", [*STEPPERS, "Adafactor"])
def test_steps_need_no_memory(name):
    """After the first step, which makes the state, some blocks are allocated, whatever the parameter's size."""
    from rushlight import kernels

    p = parameter(np.ones((4000, 1000)), np.float32)
    p.grad = wrap(np.ones_like(p._array))
    o = make(name, [p], lr=0.1)
    kernels.native_status()
    o.step()
    gc.collect()
    tracemalloc.start()
    o.step()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2_000_000, f"{peak} bytes for a parameter of {p.nbytes}"


def test_gradients_are_not_changed():
    for name, options in CASES:
        p = parameter(np.ones((2, 3)))
        o = make(name, [p], **options)
        grad = wrap(np.arange(6.0).reshape(2, 3))
        p.grad = grad
        o.step(lambda: 1.0)
        assert grad._array.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]], name


def test_closures_run_with_gradients():
    p = parameter([1.0])
    for name in EVERY:
        if name == "Muon":
            continue
        o = make(name, [p], lr=0.01)

        def closure():
            o.zero_grad()  # noqa: B023
            loss = (p * p).sum()
            loss.backward()
            return loss

        with torch.no_grad():
            loss = o.step(closure)
        assert loss.requires_grad


# Differentiable steps ------------------------------------------------------------------------------

DIFFERENTIABLE = [(n, o) for n, o in CASES if n in STEPPERS]


@pytest.mark.parametrize(("name", "options"), DIFFERENTIABLE)
def test_differentiable_steps_give_the_same_numbers(name, options):
    start, grad = np.array([[1.0, -2.0], [0.5, 3.0]]), np.array([[0.3, -1.0], [2.0, 0.1]])
    plain = parameter(start)
    o = make(name, [plain], **{"lr": 0.05, **options})
    leaf, g = wrap(start.copy()).requires_grad_(), wrap(grad.copy()).requires_grad_()
    p = leaf.clone()
    p.retain_grad()
    again = make(name, [p], **{"lr": 0.05, **options}, differentiable=True)
    for _ in range(3):
        step(o, plain, grads=[grad])
        p.grad = g
        again.step()
    assert np.allclose(p._array, plain._array, rtol=1e-10)
    assert p.requires_grad
    for key, value in o.state[plain].items():
        assert np.allclose(again.state[p][key]._array, value._array, rtol=1e-10), key


@pytest.mark.parametrize(("name", "options"), DIFFERENTIABLE)
def test_gradients_through_steps(name, options):
    """Against finite differences, through three steps: with respect to parameters and gradients."""
    start, grad = np.array([1.0, -2.0, 0.5]), np.array([0.3, -1.0, 2.0])

    def after(start, grad):
        p = start.clone() if isinstance(start, torch.Tensor) else wrap(start).requires_grad_().clone()
        p.retain_grad()
        o = make(name, [p], **{"lr": 0.05, **options}, differentiable=True)
        for _ in range(3):
            p.grad = grad if isinstance(grad, torch.Tensor) else wrap(grad.copy())
            o.step()
        return (p * p).sum()

    a, g = wrap(start.copy()).requires_grad_(), wrap(grad.copy()).requires_grad_()
    found = torch.autograd.grad(after(a, g), [a, g], allow_unused=True)
    for i, (values, other) in enumerate(((start, grad), (grad, start))):
        for k in range(3):
            moved = []
            for eps in (1e-5, -1e-5):
                shifted = values.copy()
                shifted[k] += eps
                moved.append(after(*((shifted, other) if i == 0 else (other, shifted))).item())
            expected = (moved[0] - moved[1]) / 2e-5
            assert np.isclose(0.0 if found[i] is None else found[i][k].item(), expected, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("name", ["SGD", "Adam", "NAdam", "RAdam", "RMSprop", "Adagrad", "Adadelta", "Adamax"])
def test_gradients_of_the_learning_rate(name):
    lr = wrap(np.array(0.1)).requires_grad_()
    p = wrap(np.array([1.0, 2.0]))
    p.grad = wrap(np.array([1.0, -2.0]))
    make(name, [p], lr=lr, differentiable=True).step()
    assert torch.autograd.grad(p.sum(), lr)[0].item() != 0


def test_differentiable_steps_are_refused_where_they_make_no_sense():
    p = parameter([1.0])
    p.grad = torch.ones(1, dtype=torch.float64)
    for name in STEPPERS:
        with pytest.raises(RuntimeError, match="leaf"):
            make(name, [p], differentiable=True).step()
        if name != "SGD":
            with pytest.raises(AssertionError, match="foreach"):
                make(name, [p], differentiable=True, foreach=True).step()


def test_complex_differentiable_steps():
    leaf = wrap(np.array([1 + 2j, 3 - 1j])).requires_grad_()
    p = leaf.clone()
    p.retain_grad()
    p.grad = wrap(np.array([1 + 1j, -1j]))
    o = OPTIM.Adam([p], lr=0.1, differentiable=True)
    o.step()
    q = parameter([1 + 2j, 3 - 1j], np.complex128)
    step(OPTIM.Adam([q], lr=0.1), q, grads=[np.array([1 + 1j, -1j])])
    assert np.allclose(p._array, q._array)
    weights = wrap(np.array([[1.0, 2.0], [3.0, 4.0]]))
    assert torch.autograd.grad((torch.view_as_real(p) * weights).sum(), leaf)[0].tolist() == [1 + 2j, 3 + 4j]


# Checkpoints ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "options"), CASES)
@pytest.mark.parametrize("way", ["state_dict", "deepcopy", "pickle"])
def test_going_on_from_a_checkpoint(name, options, way):
    rng = np.random.default_rng(0)
    start, *grads = rng.standard_normal((5, 3, 2))
    p = parameter(start)
    o = make(name, [p], **{"lr": 0.05, **options})
    step(o, p, grads=grads[:1])
    step(o, p, grads=grads[1:2])
    if way == "state_dict":
        q = parameter(p._array.copy())
        again = make(name, [q])
        again.load_state_dict(copy.deepcopy(o.state_dict()))
    else:
        again = copy.deepcopy(o) if way == "deepcopy" else pickle.loads(pickle.dumps(o))
        q = again.param_groups[0]["params"][0]
        assert q is not p
    for x, optimizer in ((p, o), (q, again)):
        step(optimizer, x, grads=grads[2:3])
        step(optimizer, x, grads=grads[3:])
    assert np.allclose(p._array, q._array, rtol=1e-7)  # counters become float64 with the rest of the state


def test_the_form_of_a_checkpoint():
    p, q = parameter([1.0], np.float32), parameter([1.0], np.float32)
    o = OPTIM.Adam([{"params": [p]}, {"params": [q], "lr": 0.5}])
    step(o, q)
    state = o.state_dict()
    assert [g["params"] for g in state["param_groups"]] == [[0], [1]]
    assert list(state["state"]) == [1]
    assert list(state["state"][1]) == ["step", "exp_avg", "exp_avg_sq"]
    kept = state["state"][1]["step"]
    assert kept.shape == () and kept.dtype is torch.float32 and kept.item() == 1
    assert state["state"][1]["exp_avg"] is o.state[q]["exp_avg"]


def test_state_takes_the_dtype_of_its_parameter():
    p, q = parameter([1.0]), parameter([1.0], np.float16)
    o, other = OPTIM.Adam([p]), OPTIM.Adam([q])
    step(o, p)
    other.load_state_dict(o.state_dict())
    assert other.state[q]["exp_avg"].dtype is torch.float16
    assert other.state[q]["step"].dtype is torch.float32
    counter = OPTIM.NAdam([parameter([1.0], np.float32)])
    step(counter, *counter.param_groups[0]["params"])
    third = OPTIM.NAdam([q])
    third.load_state_dict(counter.state_dict())
    assert third.state[q]["mu_product"].dtype is torch.float32
    same = OPTIM.Adam([parameter([1.0])])
    same.load_state_dict(o.state_dict())
    assert next(iter(same.state.values()))["exp_avg"] is o.state[p]["exp_avg"]


def test_checkpoints_that_do_not_fit():
    p, q = parameter([1.0]), parameter([1.0])
    one, two = OPTIM.SGD([p, q]), OPTIM.SGD([{"params": [p]}, {"params": [q]}])
    with pytest.raises(ValueError, match="different number of parameter groups"):
        one.load_state_dict(two.state_dict())
    with pytest.raises(ValueError, match="doesn't match the size"):
        one.load_state_dict(OPTIM.SGD([p]).state_dict())
    with pytest.raises(KeyError):
        one.load_state_dict({})


def test_old_checkpoints():
    """Steps were numbers, and options were fewer."""
    p = parameter([1.0])
    for name in ("Adam", "NAdam", "ASGD", "RAdam", "Adamax", "Rprop", "Adagrad", "RMSprop", "Adadelta"):
        o = make(name, [p])
        step(o, p)
        state = copy.deepcopy(o.state_dict())
        for key in (
            "maximize",
            "foreach",
            "differentiable",
            "capturable",
            "fused",
            "decoupled_weight_decay",
            "amsgrad",
        ):
            state["param_groups"][0].pop(key, None)
        for key in ("step", "mu_product", "eta", "mu"):
            if key in state["state"][0]:
                state["state"][0][key] = state["state"][0][key].item()
        again = make(name, [p])
        again.load_state_dict(state)
        step(again, p)
        assert isinstance(again.state[p]["step"], torch.Tensor) and again.state[p]["step"].item() == 2
    o = OPTIM.SGD([p], momentum=0.9, differentiable=True)
    o.load_state_dict({"state": {0: {"momentum_buffer": None}}, "param_groups": o.state_dict()["param_groups"]})
    o.param_groups[0]["differentiable"] = False
    step(o, p)
    assert o.state[p]["momentum_buffer"] is not None


def test_scalars_are_wide_where_the_default_is():
    p = parameter([1.0])
    torch.set_default_dtype(torch.float64)
    try:
        o = OPTIM.Adam([p])
        step(o, p)
    finally:
        torch.set_default_dtype(torch.float32)
    assert o.state[p]["step"].dtype is torch.float64


# Gradients, hooks, printing ------------------------------------------------------------------------


def test_zero_grad():
    p = parameter([1.0])
    o = OPTIM.SGD([p])
    p.grad = torch.ones(1, dtype=torch.float64)
    grad = p.grad
    o.zero_grad(set_to_none=False)
    assert p.grad is grad and grad.item() == 0 and grad._version == 1
    o.zero_grad()
    assert p.grad is None
    x = torch.ones(1, dtype=torch.float64, requires_grad=True)
    p.grad = x * 2
    o.zero_grad(set_to_none=False)
    assert not p.grad.requires_grad and p.grad.item() == 0


def test_step_hooks_and_their_order():
    p = parameter([1.0])
    o = OPTIM.SGD([p])
    seen = []

    def note(name, result=None):
        return lambda optimizer, args, kwargs: seen.append((name, optimizer is args[0], len(args), kwargs)) or result

    handles = [
        o.register_step_pre_hook(note("pre")),
        o.register_step_post_hook(note("post")),
        base.register_optimizer_step_pre_hook(note("all pre")),
        base.register_optimizer_step_post_hook(note("all post")),
    ]
    assert o.step(lambda: 7) == 7
    assert seen == [(name, True, 2, {}) for name in ("all pre", "pre", "post", "all post")]
    for handle in handles:
        handle.remove()
    assert o.step(closure=lambda: 8) == 8 and len(seen) == 4
    with o.register_step_pre_hook(lambda optimizer, args, kwargs: ((optimizer, lambda: 9), {})):
        assert o.step() == 9
    with (
        o.register_step_pre_hook(lambda optimizer, args, kwargs: 3),
        pytest.raises(RuntimeError, match=r"must return None or a tuple of \(new_args, new_kwargs\), but got 3"),
    ):
        o.step()


def test_hooks_of_own_optimizers():
    class Own(OPTIM.Optimizer):
        def __init__(self, params):
            super().__init__(params, {"lr": 1.0})

        def step(self, closure=None):
            seen.append("step")

    seen = []
    o = Own([parameter([1.0])])
    o.register_step_post_hook(lambda *_: seen.append("hook"))
    o.step()
    assert seen == ["step", "hook"]


def test_state_dict_hooks():
    p = parameter([1.0])
    o = OPTIM.SGD([p], lr=0.1)
    seen = []
    o.register_state_dict_pre_hook(lambda opt: seen.append("first"))
    o.register_state_dict_pre_hook(lambda opt: seen.append("before"), prepend=True)
    o.register_state_dict_post_hook(lambda opt, state: {**state, "extra": 1})
    state = o.state_dict()
    assert seen == ["before", "first"] and state["extra"] == 1

    def change(opt, state):
        group = {**state["param_groups"][0], "lr": 5.0}
        return {**state, "param_groups": [group]}

    o.register_load_state_dict_pre_hook(change)
    o.register_load_state_dict_post_hook(lambda opt: seen.append("loaded"))
    o.load_state_dict(state)
    assert o.param_groups[0]["lr"] == 5.0 and seen[-1] == "loaded"


def test_printing():
    text = repr(OPTIM.SGD([{"params": [parameter([1.0])]}, {"params": [parameter([1.0])], "lr": 0.5}], lr=0.1))
    assert text.startswith("SGD (\nParameter Group 0\n    dampening: 0\n    differentiable: False\n")
    assert text.endswith("    weight_decay: 0\n)") and "\n\nParameter Group 1\n" in text and "lr: 0.5" in text


@pytest.mark.parametrize("name", EVERY)
def test_optimizers_die_with_their_last_reference(name):
    gc.collect()
    gc.disable()
    try:
        p = parameter(np.ones((2, 2)))
        o = make(name, [p])
        step(o, p)
        schedule = torch.optim.lr_scheduler.StepLR(o, 1)
        refs = [weakref.ref(x) for x in (o, p, schedule)]
        del o, p, schedule
        assert [r() for r in refs] == [None] * 3
    finally:
        gc.enable()
