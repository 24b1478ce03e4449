"""Overriding functions: who is asked, with what, and what becomes of results."""

from __future__ import annotations

import copy
import io
import pickle
import subprocess
import sys
from typing import Any

import pytest
from tests.processes import printed

import rushlight as torch
import rushlight.nn.functional as F
from rushlight.overrides import TorchFunctionMode, resolve_name

calls: list[tuple[Any, tuple[str, ...]]] = []


class Own(torch.Tensor):
    """Says nothing of its own."""


class Younger(Own):
    pass


class Other(torch.Tensor):
    pass


class Logged(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        calls.append((func, tuple(t.__name__ for t in types)))
        return super().__torch_function__(func, types, args, kwargs)


class Wrapper(torch.Tensor):
    """Keeps its tensor in an attribute, and forwards operators to it."""

    @staticmethod
    def __new__(cls, x):
        return torch.Tensor.__new__(cls)

    def __init__(self, x):
        self.value = x

    @classmethod
    def __torch_function__(cls, f, types, args=(), kwargs=None):
        return f(*(a.value if isinstance(a, cls) else a for a in args), **(kwargs or {}))


class Like:
    """No tensor."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func, types, args, kwargs or {}


class Refuses:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return NotImplemented


def own(*values: float) -> Any:
    return torch.tensor(values or (1.0, 2.0)).as_subclass(Own)


def logged(run: Any) -> list[str | None]:
    x = torch.ones(2, 2).as_subclass(Logged)
    calls.clear()
    run(x)
    return [resolve_name(func) for func, _ in calls]


# Results --------------------------------------------------------------------------------------------------------------

KEPT = {
    "+": lambda x: x + 1, "on the right": lambda x: torch.ones(2) * x, "reflected": lambda x: 2 - x,
    "function": torch.exp, "method": lambda x: x.exp(), "composed": lambda x: F.normalize(x, dim=0), "index": lambda x: x[0],
    "mask": lambda x: x[x > 1], "view": lambda x: x.view(2, 1), "T": lambda x: x.reshape(1, 2).T, "detach": lambda x: x.detach(),
    "data": lambda x: x.data, "cat": lambda x: torch.cat([torch.ones(1), x]), "like": torch.zeros_like,
    "new": lambda x: x.new_zeros(3), "out": lambda x: torch.add(torch.ones(2), 1, out=x), "to": lambda x: x.to(torch.float64),
    "in place": lambda x: x.add_(1), "+=": lambda x: x.__iadd__(1), "by keyword": lambda x: torch.sum(input=x),
    "layer": lambda x: torch.nn.Linear(2, 2)(x), "parameter": lambda x: torch.nn.Parameter(torch.ones(2)) + x,
    "compare": lambda x: x == 1, "part": lambda x: x.sort().values, "iteration": lambda x: next(iter(x)),
}  # fmt: skip


@pytest.mark.parametrize("name", KEPT)
def test_results_are_of_the_subclass(name: str) -> None:
    assert type(KEPT[name](own())) is Own


def test_what_is_inside_of_results_is_of_the_subclass_too() -> None:
    largest = own().reshape(1, 2).max(dim=0)
    assert type(largest).__name__ == "max" and [type(t) for t in largest] == [Own, Own]
    assert [type(t) for t in own().split(1)] == [Own, Own] and [type(t) for t in own()] == [Own, Own]


def test_what_is_no_tensor_stays_what_it_is() -> None:
    x = own()
    assert type(x.shape) is torch.Size and x.tolist() == [1, 2] and x.dtype is torch.float32 and x.sum().item() == 3
    assert type(x.numpy()).__name__ == "ndarray" and len(x) == 2 and 1 in x


def test_the_youngest_class_wins_and_strangers_do_not_mix() -> None:
    younger = torch.ones(2).as_subclass(Younger)
    assert type(own() + younger) is Younger and type(younger + own()) is Younger
    with pytest.raises(TypeError, match="unsupported operand"):
        own() + torch.ones(2).as_subclass(Other)
    with pytest.raises(TypeError, match=r"Multiple dispatch failed for 'torch.cat'"):
        torch.cat([own(), torch.ones(2).as_subclass(Other)])


def test_parameters_and_switched_off_classes_give_plain_tensors() -> None:
    class Scale(torch.nn.Parameter):
        pass

    class Off(torch.Tensor):
        __torch_function__ = torch._C._disabled_torch_function_impl

    for x in (Scale(torch.ones(1)), torch.nn.Parameter(torch.ones(1)), torch.nn.Buffer(torch.ones(1)), Off([1.0])):
        assert type(x * 2) is torch.Tensor
    assert type(Off([1.0, 2.0]) + own()) is Own


def test_switched_off_for_a_while() -> None:
    with torch._C.DisableTorchFunctionSubclass():
        assert type(own() + 1) is torch.Tensor and not torch.overrides.has_torch_function((own(),))
    assert type(own() + 1) is Own


# Who is asked, with what ----------------------------------------------------------------------------------------------


def test_python_operators_ask_as_methods() -> None:
    asked = logged(
        lambda x: (x + 1, 1 + x, x - 1, 1 - x, x / 2, x % 2, x @ x, -x, abs(x), x < x, x[0], x.shape, x.T, x**2)
    )
    assert asked == [f"torch.Tensor.{name}" for name in (
        "add", "add", "sub", "__rsub__", "div", "remainder", "matmul", "neg", "abs", "lt", "__getitem__", "shape.__get__",
        "T.__get__", "__pow__")]  # fmt: skip


def test_functions_are_keys_of_tables() -> None:
    x = torch.ones(2, 2).as_subclass(Logged)
    calls.clear()
    x.add(1), torch.add(x, 1), x.shape, torch.linalg.inv(x + torch.eye(2)), F.linear(x, x)
    table = {torch.Tensor.add: 1, torch.add: 2, torch.Tensor.shape.__get__: 3, torch.linalg.inv: 4, F.linear: 5}
    assert [table[func] for func, _ in calls] == [1, 2, 3, 1, 4, 5]
    assert torch.linalg.inv.__name__ == "linalg_inv" and all(isinstance(func.__name__, str) for func, _ in calls)


def test_attributes_ask_when_they_are_set_too() -> None:
    def run(x: Any) -> None:
        x.requires_grad = True
        x.grad = torch.ones(2, 2)
        del x.grad

    assert logged(run) == [
        "torch.Tensor.requires_grad.__set__",
        "torch.Tensor.grad.__set__",
        "torch.Tensor.grad.__delete__",
    ]


def test_an_operator_asks_once() -> None:
    """What it is composed of does not ask again."""
    assert logged(lambda x: F.cross_entropy(x, torch.tensor([0, 1]))) == ["torch.nn.functional.cross_entropy"]
    assert logged(torch.nn.Linear(2, 2)) == ["torch.nn.functional.linear"]


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN", "LSTMCell", "MultiheadAttention", "TransformerEncoderLayer"])
def test_layers_keep_the_class(kind: str) -> None:
    layer = getattr(torch.nn, kind)(2, **{"num_heads": 1} if kind == "MultiheadAttention" else {"nhead": 1} if "Tr" in kind
                                    else {"hidden_size": 2})  # fmt: skip
    x = torch.ones(3, 1, 2)[0 if "Cell" in kind else slice(None)].as_subclass(Own)
    found = layer(x, x, x) if kind == "MultiheadAttention" else layer(x)
    assert type(found[0] if isinstance(found, tuple) else found) is Own


def test_a_wrapper_of_a_tensor() -> None:
    w = Wrapper(torch.arange(3.0))
    assert (w + 1).tolist() == [1, 2, 3] and torch.sum(w).item() == 3 and (torch.ones(3) * w).tolist() == [0, 1, 2]
    assert w.shape == (3,) and w.numpy().tolist() == [0, 1, 2] and w[1].item() == 1 and w.value.tolist() == [0, 1, 2]


# Each in a process of its own: the first object of its kind has to be noticed.
FIRST = {
    "torch.linalg.lstsq(t, t, rcond=o)": "torch.linalg.lstsq", "torch.linalg.pinv(t, atol=o)": "torch.linalg.pinv",
    "torch.clone(o)": "torch.clone", "t + o": "torch.Tensor.add", "t.mul(o)": "torch.Tensor.mul", "t @ o": "torch.Tensor.matmul",
    "torch.linalg.cholesky(o)": "torch.linalg.cholesky", "torch.stack([t, o])": "torch.stack", "torch.exp(o)": "torch.exp",
    "F.linear(t, o)": "torch.nn.functional.linear", "torch.add(t, o)": "torch.add", "t.add(o)": "torch.Tensor.add",
    "torch.sum(o, dim=0)": "torch.sum", "torch.nn.Linear(2, 2)(o)": "torch.nn.functional.linear", "t[o]": "torch.Tensor.__getitem__",
    "torch.where(t > 0, o, t)": "torch.where", "torch.exp(t, out=o)": "torch.exp", "t.masked_fill(o, 1.0)": "torch.Tensor.masked_fill",
    "torch.mul(t, other=o)": "torch.mul", "torch.einsum('ij,jk', t, o)": "torch.einsum", "t.add_(o)": "torch.Tensor.add_",
    "t.__iadd__(o)": "torch.Tensor.add_", "t.__setitem__(0, o)": "torch.Tensor.__setitem__", "2 if t.__eq__(o) else 0": "torch.Tensor.eq",
    "torch.cat((t, o), 1)": "torch.cat", "torch.squeeze(o, dim=0)": "torch.squeeze", "torch.transpose(o, 0, 1)": "torch.transpose",
}  # fmt: skip
PROGRAM = """
import rushlight as torch
import rushlight.nn.functional as F
class Like:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        print(torch.overrides.resolve_name(func), [t.__name__ for t in types])
        return 1
"""


def test_the_first_object_that_is_no_tensor_is_noticed_wherever_it_comes() -> None:
    program = PROGRAM + "".join(
        f"import os\nif not os.fork():\n    o, t = Like(), torch.ones(2, 2)\n    {call}\n    os._exit(0)\nos.wait()\n".replace(
            "os._exit", "import sys; sys.stdout.flush(); os._exit") for call in FIRST
    )  # fmt: skip
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    python = ("torch.einsum",)
    assert ran.stdout.splitlines() == [
        f"{name} {['Tensor', 'Like'] if name in python else ['Like']}" for name in FIRST.values()
    ], ran.stderr


@pytest.mark.parametrize("call", FIRST)
def test_objects_that_are_no_tensors_are_asked(call: str) -> None:
    names = {"torch": torch, "F": F, "o": Like(), "t": torch.ones(2, 2)}
    if "__setitem__" in call:
        return
    found = eval(call.removeprefix("2 if ").removesuffix(" else 0"), names)
    assert resolve_name(found[0]) == FIRST[call]


def test_arguments_come_as_they_were_given() -> None:
    o, t = Like(), torch.ones(2)
    assert torch.sum(o, dim=1, keepdim=True)[2:] == ((o,), {"dim": 1, "keepdim": True})
    assert torch.add(t, other=o)[1:] == ((Like,), (t,), {"other": o})
    assert torch.stack([t, o], 1)[2:] == (([t, o], 1), {})
    assert F.linear(t, o)[1:] == ((Like,), (t, o), {})
    assert F.mse_loss(t, o)[1] == (torch.Tensor, Like)  # PyTorch has it in Python


def test_where_nobody_has_an_answer() -> None:
    for call in (lambda: torch.add(Refuses(), 1), lambda: F.relu(Refuses()), lambda: torch.ones(2).add(Refuses())):
        with pytest.raises(
            TypeError, match=r"Multiple dispatch failed for 'torch\..*all __torch_function__ handlers returned"
        ):
            call()
    with pytest.raises(TypeError, match="unsupported operand"):
        torch.ones(2) + Refuses()


def test_factories_ask_no_class() -> None:
    assert type(torch.zeros(own().shape)) is torch.Tensor and type(torch.full((2,), own()[0])) is torch.Tensor
    assert torch.is_tensor(own()) and not torch.is_tensor(Like())


# Modes ----------------------------------------------------------------------------------------------------------------


class Names(TorchFunctionMode):
    def __init__(self) -> None:
        self.seen: list[str | None] = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.seen.append(resolve_name(func))
        return func(*args, **(kwargs or {}))


def test_a_mode_is_asked_of_everything() -> None:
    with Names() as outer, Names() as inner:
        x = torch.ones(2)
        (x + 1).exp(), x.shape, F.relu(x), torch.cat([x, x])
    seen = [
        "torch.ones",
        "torch.Tensor.add",
        "torch.Tensor.exp",
        "torch.Tensor.shape.__get__",
        "torch.nn.functional.relu",
        "torch.cat",
    ]
    assert inner.seen == outer.seen == seen
    torch.ones(2)
    assert inner.seen == seen


def test_a_mode_comes_before_classes() -> None:
    class Counts(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return types

    x = own()
    with Counts():
        assert x + 1 == (Own,)
        with torch._C.DisableTorchFunctionSubclass():
            assert x + 1 == ()
        with torch._C.DisableTorchFunction():
            assert type(x + 1) is torch.Tensor


def test_a_mode_belongs_to_its_thread() -> None:
    import threading

    results: list[Any] = []
    with Names() as mode:
        thread = threading.Thread(target=lambda: results.append(torch.ones(2) + 1))
        thread.start()
        thread.join()
    assert type(results[0]) is torch.Tensor and not mode.seen


@pytest.mark.parametrize("name", ["lstm_cell", "gru_cell", "rnn_tanh_cell"])
def test_a_cell_is_one_function_to_modes_and_classes(name: str) -> None:
    """They were told of the operators inside, and of other ones than run without them."""
    torch.manual_seed(0)
    kind = {"lstm": torch.nn.LSTMCell, "gru": torch.nn.GRUCell, "rnn": torch.nn.RNNCell}[name.partition("_")[0]]
    cell, x = kind(3, 4), torch.randn(2, 3)
    wanted = cell(x)
    with Names() as mode:
        found = cell(x)
    assert mode.seen[-1] == f"torch.{name}" and not {"torch.tanh", "torch.nn.functional.linear"} & set(mode.seen)
    for a, b in zip(*((t if isinstance(t, tuple) else (t,)) for t in (wanted, found)), strict=True):
        assert a.equal(b)
    results = cell(x.as_subclass(Own))
    assert all(type(t) is Own for t in (results if isinstance(results, tuple) else (results,)))


def test_a_mode_that_says_nothing_raises() -> None:
    with (
        TorchFunctionMode(),
        pytest.raises(NotImplementedError, match="TorchFunctionMode defines no __torch_function__"),
    ):
        torch.ones(1)
    with torch.overrides.BaseTorchFunctionMode():
        assert torch.ones(1).item() == 1


# Autograd -------------------------------------------------------------------------------------------------------------


def test_as_subclass_is_a_view_with_a_history() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x.as_subclass(Own)
    assert not y.is_leaf and y.grad_fn.name() == "AliasBackward0" and y._base is x
    (y * torch.tensor([2.0, 3.0])).sum().backward()
    assert x.grad.tolist() == [2, 3] and type(x.grad) is torch.Tensor
    plain = torch.ones(2)
    plain.as_subclass(Own).add_(1)
    assert plain.tolist() == [2, 2] and plain._version == 1


def test_changes_in_place_of_views_reach_their_base() -> None:
    x = torch.ones(2, requires_grad=True)
    y = (x * 1).as_subclass(Own)
    y[0].mul_(3)
    (y * y).sum().backward()
    assert x.grad.tolist() == [18, 2]


def test_gradients_hooks_and_functions() -> None:
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            assert type(x) is Own
            return x * 2

        @staticmethod
        def backward(ctx, g):
            assert type(ctx.saved_tensors[0]) is Own and type(g) is torch.Tensor
            return g * 2

    x, seen = own().requires_grad_(), []
    x.register_hook(lambda g: seen.append(type(g)))
    y = Twice.apply(x)
    assert type(y) is Own
    y.sum().backward()
    assert type(x.grad) is torch.Tensor and x.grad.tolist() == [2, 2] and seen == [torch.Tensor]


@pytest.mark.filterwarnings("ignore:Using backward")
def test_gradients_of_gradients_are_computed_without_asking() -> None:
    x = torch.tensor([1.0, 2.0]).as_subclass(Logged).requires_grad_()
    y, seen = (x**3).sum(), []
    x.register_hook(lambda g: seen.append(type(g)))
    calls.clear()
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    assert [resolve_name(func) for func, _ in calls] == ["torch.autograd.grad"]
    assert type(g) is Logged and seen == [torch.Tensor]
    (h,) = torch.autograd.grad(g.sum(), x)
    assert h.tolist() == [6, 12]


def test_transformations_see_the_values() -> None:
    x = own()
    assert torch.func.grad(lambda v: (v**2).sum())(x).tolist() == [2, 4]
    assert torch.vmap(lambda v: v * 2)(x).tolist() == [2, 4]
    assert torch.func.jacrev(lambda v: v * 2)(x).tolist() == [[2, 0], [0, 2]]


# Parameters, copies, files --------------------------------------------------------------------------------------------


def test_a_parameter_of_a_subclass_is_of_it_and_is_trained() -> None:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(own())
            self.state = torch.nn.Buffer(own())

    net = Net()
    assert isinstance(net.weight, torch.nn.Parameter) and type(net.weight) is Own and net.weight.is_leaf
    assert [name for name, _ in net.named_parameters()] == ["weight"] and [name for name, _ in net.named_buffers()] == [
        "state"
    ]
    assert (
        not isinstance(own(), torch.nn.Parameter) and repr(net.weight) == "Parameter(Own([1., 2.], requires_grad=True))"
    )
    optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
    (net.weight * 2).sum().backward()
    optimizer.step()
    assert type(net.weight) is Own and net.weight.tolist() == [0, 1] and type(net.state_dict()["weight"]) is Own
    again = copy.deepcopy(net)
    assert (
        isinstance(again.weight, torch.nn.Parameter) and type(again.weight) is Own and again.weight.tolist() == [0, 1]
    )


def test_a_parameter_of_a_class_that_loses_itself_is_refused() -> None:
    with pytest.raises(RuntimeError, match="requires that detach"):
        torch.nn.Parameter(Wrapper(torch.ones(2)))


@pytest.mark.parametrize("way", ["copy", "deepcopy", "pickle", "save"])
def test_copies_are_of_the_subclass_with_its_attributes(way: str) -> None:
    x = own().requires_grad_()
    x.note = "kept"
    if way == "save":
        file = io.BytesIO()
        torch.save(x, file)
        file.seek(0)
        found = torch.load(file, weights_only=False)
        file.seek(0)
        with pytest.raises(pickle.UnpicklingError, match="Own was not an allowed global"):
            torch.load(file)
    else:
        found = {"copy": copy.copy, "deepcopy": copy.deepcopy, "pickle": lambda x: pickle.loads(pickle.dumps(x))}[way](
            x
        )
    assert type(found) is Own and found.tolist() == [1, 2] and found.note == "kept" and found.requires_grad
    assert (found._storage is x._storage) == (way == "copy")


def test_making_objects() -> None:
    assert (
        type(Own([1.0])) is Own
        and Own().shape == (0,)
        and Own(2, 3).shape == (2, 3)
        and Own(torch.ones(2)).tolist() == [1, 1]
    )
    assert type(torch.Tensor._make_subclass(Own, torch.ones(1), True)) is Own
    assert (
        torch.ones(2).as_subclass(torch.nn.Parameter).tolist() == [1, 1]
        and type(own().as_subclass(torch.Tensor)) is torch.Tensor
    )
    for make in (torch.ones(1).as_subclass, lambda kind: torch.Tensor._make_subclass(kind, torch.ones(1))):
        with pytest.raises(TypeError, match="must be a subclass of Tensor"):
            make(int)
    with pytest.raises(TypeError, match="has no __torch_dispatch__"):
        torch.Tensor._make_wrapper_subclass(Own, (2, 3))


def test_they_print_as_their_class() -> None:
    assert repr(own()) == "Own([1., 2.])"
    assert repr(torch.ones(1, requires_grad=True).as_subclass(Own) * 2) == "Own([2.], grad_fn=<AliasBackward0>)"


# torch.overrides ------------------------------------------------------------------------------------------------------


def test_functions_of_ones_own() -> None:
    def scaled(x: Any, by: float = 2.0) -> Any:
        if torch.overrides.has_torch_function_unary(x):
            return torch.overrides.handle_torch_function(scaled, (x,), x, by=by)
        return x * by

    assert scaled(torch.ones(1)).item() == 2
    func, types, args, kwargs = scaled(Like(), 3.0)
    assert func is scaled and types == (Like,) and isinstance(args[0], Like) and kwargs == {"by": 3.0}

    @torch.overrides.wrap_torch_function(lambda a, b: (a, b))
    def both(a: Any, b: Any) -> Any:
        return a + b

    assert both(1, 2) == 3 and both(1, Like())[0] is both


def test_lists_of_functions() -> None:
    listed = torch.overrides.get_overridable_functions()
    assert torch.add in listed[torch] and torch.Tensor.add in listed[torch.Tensor] and F.relu in listed[F]
    assert torch.Tensor.shape.__get__ in listed[torch.Tensor] and torch.linalg.inv in listed[torch.linalg]
    ignored = torch.overrides.get_ignored_functions()
    assert {torch.zeros, torch.is_tensor, torch.manual_seed, torch.Tensor.as_subclass} <= ignored
    assert {torch.is_autocast_enabled, torch.is_grad_enabled, torch.no_grad, torch.load, torch.device} <= ignored
    assert not ignored & {func for functions in listed.values() for func in functions}
    replaced = torch.overrides.get_testing_overrides()
    assert (
        set(replaced) == {func for functions in listed.values() for func in functions}
        and replaced[torch.add](1, 2) == -1
    )
    assert torch.Tensor.grad.__get__ in torch.overrides.get_default_nowrap_functions()
    assert resolve_name(torch.linalg.inv) == "torch.linalg.inv" and resolve_name(len) is None
    with torch.overrides.enable_reentrant_dispatch():
        assert torch.overrides.is_tensor_method_or_property(torch.Tensor.shape.__get__)


def test_methods_and_functions_are_different_objects_that_can_be_pickled() -> None:
    assert torch.add is not torch.Tensor.add and not torch.overrides.is_tensor_method_or_property(torch.add)
    for func in (torch.add, torch.Tensor.add, torch.linalg.inv, F.relu, torch.Tensor.exp):
        assert pickle.loads(pickle.dumps(func)) is func


def test_warnings_name_the_line_of_the_caller_though_functions_ask() -> None:
    own()
    with pytest.warns(UserWarning, match="non-leaf|not a leaf") as seen:
        (torch.ones(1, requires_grad=True) * 2).grad
    with pytest.warns(UserWarning, match="size_average") as others:
        F.mse_loss(torch.ones(2), torch.ones(2), size_average=True)
    assert {w.filename for w in (*seen, *others)} == {__file__}


def test_classes_with_slots_and_tensors_with_bits() -> None:
    class Slotted(torch.Tensor):
        __slots__ = ("extra",)

    x = torch.ones(2).as_subclass(Slotted)
    x.extra = 1
    assert type(x * 2) is Slotted and not hasattr(x * 2, "extra")
    z = torch.tensor([1 + 2j]).as_subclass(Own).conj()
    assert z.__class__ is Own and z.is_conj() and z.tolist() == [1 - 2j] and (z * 1).__class__ is Own


def test_inside_of_transformations() -> None:
    def doubled(v: Any) -> Any:
        inner = v.as_subclass(Own)
        assert type(inner * 2) is Own
        return inner * 2

    assert torch.vmap(doubled)(torch.ones(3, 2)).tolist() == [[2, 2]] * 3
    assert torch.func.jvp(doubled, (torch.ones(2),), (torch.ones(2),))[1].tolist() == [2, 2]
    assert torch.func.grad(lambda v: doubled(v).sum())(torch.ones(2)).tolist() == [2, 2]


def test_operators_of_aten_ask_with_themselves() -> None:
    asked: list[str] = []

    class Asking(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            asked.append(str(func))
            return super().__torch_function__(func, types, args, kwargs or {})

    x = torch.ones(2).as_subclass(Asking)
    assert type(torch.ops.aten.add(x, 1)) is Asking and type(torch.ops.aten.sum.dim_IntList(x, [0])) is Asking
    assert asked == ["aten.add", "aten.sum.dim_IntList"]
    step = torch.fx.symbolic_trace(lambda x: torch.ops.aten.add.Tensor(x, 1))
    assert "torch.ops.aten.add.Tensor(x, 1)" in step.code and step(2 * x).tolist() == [3.0, 3.0]


def test_plain_tensors_answer_with_the_function_itself() -> None:
    x = torch.ones(2)
    assert torch.overrides.handle_torch_function(torch.add, (x,), x, 1).tolist() == [2.0, 2.0]
    with pytest.raises(TypeError, match=r"torch\.add|rushlight\.add"):
        torch.overrides.handle_torch_function(torch.add, (), x, 1)


NAMED_TUPLES = """
from typing import NamedTuple
import rushlight as torch
import rushlight.nn.functional as F


class Parts(NamedTuple):
    value: torch.Tensor
    scale: float


class Scaled(Parts):  # as packages make quantized tensors
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        plain = [x.value * x.scale if isinstance(x, Scaled) else x for x in args]
        return func(*plain, **(kwargs or {}))


x = torch.ones(1, 3, 5, 5)
"""


@pytest.mark.parametrize(
    "call", ["conv2d({}, torch.ones(2, 3, 3, 3))", "linear({}, torch.ones(2, 5))", "pad({}, (1, 1))", "relu({})"]
)
def test_named_tuples_override_the_first_function_that_meets_one(call: str) -> None:
    check = f"assert torch.equal(F.{call.format('Scaled(x, 2.0)')}, F.{call.format('2 * x')})"
    printed("-c", NAMED_TUPLES + check)


@pytest.mark.filterwarnings("ignore:Using backward:UserWarning")
@pytest.mark.parametrize("create", [False, True])
def test_hooks_and_custom_functions_ask_classes_while_a_graph_is_made_of_backward(create: bool) -> None:
    own, kinds = torch.ones(2).as_subclass(Own), []

    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            kinds.append(type(own * 2))
            return g * 2

    def look(*_):
        kinds.append(type(own * 2))

    x = torch.ones(2, requires_grad=True)
    y = x * x
    for register in (x.register_hook, x.register_post_accumulate_grad_hook, y.register_hook, y.grad_fn.register_hook,
                     y.grad_fn.register_prehook):  # fmt: skip
        register(look)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: (look(), t)[1]):
        z = y.exp()
    loss = Twice.apply(z).sum()
    loss.backward(create_graph=create)
    assert kinds == [Own] * 7
    kinds.clear()
    with torch._C.DisableTorchFunctionSubclass():
        (x * 2).sum().backward(create_graph=create)
    assert kinds == [torch.Tensor] * 2
