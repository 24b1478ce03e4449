"""`torch.compile`: what wraps a model has the names, attributes and errors of PyTorch's, whose backend "eager" compiles nothing either."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import rushlight

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore::DeprecationWarning")]


def linear(t: Any) -> Any:
    return t.compile(t.nn.Linear(2, 3), backend="eager")


def attributes(t: Any) -> Any:
    model = linear(t)
    model.tag = 3
    within = model._orig_mod.tag, model.in_features, "in_features" in dir(model)
    del model.tag
    model.eval()
    return *within, hasattr(model._orig_mod, "tag"), model.training, model._orig_mod.training, "training" in vars(model)


def hooks(t: Any) -> Any:
    model, seen = linear(t), []
    model.register_forward_hook(lambda module, args, out: seen.append(type(module).__name__))
    model._orig_mod.register_forward_hook(lambda module, args, out: seen.append(type(module).__name__))
    model(t.ones(1, 2)).sum().backward()
    return seen, [p.grad.shape for p in model.parameters()]


def checkpoint(t: Any) -> Any:
    """As programs strip the prefix of what they have saved."""
    model, bare = linear(t), t.nn.Linear(2, 3)
    saved = {name.removeprefix("_orig_mod."): value for name, value in model.state_dict().items()}
    bare.load_state_dict(saved)
    raw = model._orig_mod if isinstance(model, t._dynamo.eval_frame.OptimizedModule) else model
    return str(bare.load_state_dict(raw.state_dict())), bool((bare.weight == model.weight).all())


def replaced(t: Any) -> Any:
    model = linear(t)
    model._orig_mod = t.nn.Linear(4, 1)
    return [tuple(p.shape) for p in model.parameters()], model.in_features


def class_of_modules(t: Any) -> Any:
    """Of a class of its own: PyTorch writes into the class that it is given, and others trace its layers."""

    class Own(t.nn.Linear):
        pass

    return t.compile(Own, backend="eager") is Own


ASKED: dict[str, Callable[[Any], Any]] = {
    "state": lambda t: list(linear(t).state_dict()),
    "modules": lambda t: [name for name, _ in linear(t).named_modules()],
    "printed": lambda t: repr(linear(t)),
    "class": lambda t: (type(linear(t)).__name__, isinstance(linear(t), t.nn.Linear), isinstance(linear(t), t.nn.Module)),
    "attributes": attributes,
    "hooks": hooks,
    "checkpoint": checkpoint,
    "another module within": replaced,
    "copies": lambda t: list(copy.deepcopy(linear(t)).state_dict()),
    "pickles": lambda t: list(pickle.loads(pickle.dumps(linear(t))).state_dict()),
    "length": lambda t: len(t.compile(t.nn.Sequential(t.nn.ReLU()), backend="eager")),
    "no length": lambda t: len(linear(t)),
    "no attribute": lambda t: linear(t).nope,
    "in place": lambda t: (lambda m: (m._compiled_call_impl, m.compile(backend="eager"), bool(m._compiled_call_impl), list(m.state_dict()),
                                      copy.deepcopy(m)._compiled_call_impl))(t.nn.Linear(1, 1)),
    "function": lambda t: t.compile(max, backend="eager").__name__,
    "class of modules": class_of_modules,
    "disabled": lambda t: t.compile(max, disable=True) is max,
    "unknown mode": lambda t: t.compile(max, mode="fast"),
    "mode and options": lambda t: t.compile(max, mode="default", options={}),
    "unknown backend": lambda t: t.compile(max, backend="fast"),
    "no callable": lambda t: t.compile(3),
    "backends": lambda t: (t.compiler.list_backends()[:3], callable(t._dynamo.lookup_backend("eager"))),
    "supported": lambda t: t._dynamo.is_dynamo_supported(),
}  # fmt: skip


@pytest.mark.parametrize("name", ASKED)
def test_compiled(name: str) -> None:
    import torch._dynamo

    def run(t: Any) -> Any:
        try:
            return ASKED[name](t)
        except Exception as error:
            return type(error).__name__, str(error)

    assert run(rushlight) == run(torch)
