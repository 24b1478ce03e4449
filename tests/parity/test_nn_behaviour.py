"""Modules do, in the same order, what PyTorch's do.  Each scenario runs on both libraries and returns plain values."""

import copy
import pickle
import warnings
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import pytest

import rushlight

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity
SCENARIOS: dict[str, Callable[[Any], Any]] = {}


def scenario(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    SCENARIOS[function.__name__] = function
    return function


def values(x: Any) -> Any:
    if isinstance(x, (list, tuple)):
        return [values(v) for v in x]
    if isinstance(x, dict):
        return {k: values(v) for k, v in x.items()}
    return x.tolist() if hasattr(x, "tolist") else x


def linear(lib: Any, n: int = 2) -> Any:
    layer = lib.nn.Linear(n, n)
    with lib.no_grad():
        layer.weight.copy_(lib.arange(float(n * n)).reshape(n, n))
        layer.bias.fill_(1.0)
    return layer


def net(lib: Any) -> Any:
    class Net(lib.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = linear(lib), linear(lib)
            self.register_buffer("scale", lib.ones(2))
            self.register_buffer("passing", lib.ones(1), persistent=False)

        def forward(self, x: Any, factor: float = 1.0) -> Any:
            return self.second(lib.relu(self.first(x))) * self.scale * factor

    return Net()


@scenario
def forward_hooks(t: Any) -> Any:
    m, log = net(t), []

    def note(name: str, result: Any = None) -> Callable[..., Any]:
        def hook(module: Any, *args: Any) -> Any:
            log.append((name, type(module).__name__, values([a for a in args if not isinstance(a, dict)])))
            return result

        return hook

    m.register_forward_pre_hook(note("pre 1"))
    m.register_forward_pre_hook(note("pre 2"), prepend=True)
    m.register_forward_pre_hook(note("pre kwargs", ((t.ones(1, 2),), {"factor": 3.0})), with_kwargs=True)
    handle = m.register_forward_hook(note("post 1"))
    m.register_forward_hook(note("post kwargs", t.zeros(2)), with_kwargs=True)
    m.register_forward_hook(note("post 0"), prepend=True)
    m.first.register_forward_hook(note("inner"))
    first = m(t.full((1, 2), 2.0), factor=2.0)
    handle.remove()
    second = m(t.ones(1, 2))
    return log, values(first), values(second)


@scenario
def pre_hook_replaces_by_one_value(t: Any) -> Any:
    m = linear(t)
    m.register_forward_pre_hook(lambda module, args: args[0] * 2)
    return values(m(t.ones(1, 2)))


@scenario
def global_hooks(t: Any) -> Any:
    m, log = net(t), []
    module = t.nn.modules.module
    handles = [
        module.register_module_forward_pre_hook(lambda m, a: log.append(("pre", type(m).__name__))),
        module.register_module_forward_hook(lambda m, a, r: log.append(("post", type(m).__name__))),
    ]
    m.register_forward_pre_hook(lambda m, a: log.append("own pre"))
    m.register_forward_hook(lambda m, a, r: log.append("own post"))
    m(t.ones(1, 2))
    for handle in handles:
        handle.remove()
    m(t.ones(1, 2))
    return log


@scenario
def registration_hooks(t: Any) -> Any:
    log: list[Any] = []
    module = t.nn.modules.module
    handles = [
        module.register_module_parameter_registration_hook(lambda m, n, p: log.append(("parameter", n))),
        module.register_module_buffer_registration_hook(lambda m, n, b: log.append(("buffer", n))),
        module.register_module_module_registration_hook(lambda m, n, c: log.append(("module", n))),
    ]
    net(t)
    for handle in handles:
        handle.remove()
    net(t)
    return log


@scenario
def always_called_hooks(t: Any) -> Any:
    log: list[Any] = []

    class Fails(t.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            raise KeyError("here")

    m = Fails()
    m.register_forward_hook(lambda m, a, r: log.append("never"))
    m.register_forward_hook(lambda m, a, r: log.append(("always", r)), always_call=True)
    m.register_forward_hook(lambda m, a, k, r: log.append(("kwargs", k, r)), always_call=True, with_kwargs=True)
    with pytest.raises(KeyError):
        m(1)
    ok = t.nn.Identity()

    def bad(*args: Any) -> None:
        log.append("bad")
        raise ValueError("hook")

    ok.register_forward_hook(lambda m, a, r: log.append(("first", r)), always_call=True)
    ok.register_forward_hook(bad)
    ok.register_forward_hook(lambda m, a, r: log.append(("last", r)), always_call=True)
    with pytest.raises(ValueError):
        ok(3)
    return log


@scenario
def full_backward_hooks(t: Any) -> Any:
    m, log = net(t), []
    m.register_full_backward_hook(lambda m, gi, go: log.append(("net", values(gi), values(go))))
    m.register_full_backward_pre_hook(lambda m, go: log.append(("net pre", values(go))))
    m.first.register_full_backward_hook(lambda m, gi, go: log.append(("first", values(gi), values(go))))
    m.second.register_full_backward_hook(lambda m, gi, go: (gi[0] * 2,))
    m.second.register_full_backward_hook(lambda m, gi, go: log.append(("second", values(gi), values(go))))
    m.second.register_full_backward_hook(lambda m, gi, go: log.append("before"), prepend=True)
    x = t.tensor([[1.0, 2.0]], requires_grad=True)
    m(x).sum().backward()
    return log, values(x.grad), values(m.first.weight.grad)


@scenario
def backward_pre_hook_replaces(t: Any) -> Any:
    m, log = linear(t), []
    m.register_full_backward_pre_hook(lambda m, go: (go[0] * 10,))
    m.register_full_backward_pre_hook(lambda m, go: log.append(values(go)))
    m.register_full_backward_hook(lambda m, gi, go: log.append((values(gi), values(go))))
    x = t.ones(1, 2, requires_grad=True)
    m(x).sum().backward()
    return log, values(x.grad), values(m.weight.grad)


@scenario
def backward_hooks_of_several_arguments(t: Any) -> Any:
    log: list[Any] = []

    class Many(t.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, a: Any, number: int, b: Any, c: Any) -> Any:
            return a * number, b.detach(), a + b

    m = Many()
    m.register_full_backward_hook(lambda m, gi, go: log.append((values(gi), values(go))))
    a, b, c = t.ones(2, requires_grad=True), t.ones(2, requires_grad=True), t.ones(2)
    x, y, z = m(a, 3, b, c)
    (x.sum() + 2 * z.sum()).backward()
    log.append([x.requires_grad, y.requires_grad, z.requires_grad])
    x, y, z = m(a, 3, b, c)
    z.sum().backward()
    return log, values(a.grad), values(b.grad)


@scenario
def backward_hooks_without_differentiable_inputs(t: Any) -> Any:
    m, log = linear(t), []
    m.register_full_backward_hook(lambda m, gi, go: log.append((values(gi), values(go))))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        m(t.ones(1, 2)).sum().backward()
    return log, [w.category.__name__ for w in caught], values(m.weight.grad)


@scenario
def backward_hooks_with_gradients_of_inputs_only(t: Any) -> Any:
    m, log = linear(t), []
    m.register_full_backward_hook(lambda m, gi, go: log.append((values(gi), values(go))))
    x = t.ones(1, 2, requires_grad=True)
    found = t.autograd.grad(m(x).sum(), x)
    weights = t.autograd.grad(m(x).sum(), m.weight)
    return log, values(found), values(weights)


@scenario
def backward_hooks_without_gradients(t: Any) -> Any:
    m, log = linear(t), []
    m.register_full_backward_hook(lambda m, gi, go: log.append("hook"))
    with t.no_grad():
        y = m(t.ones(1, 2, requires_grad=True))
    return log, y.requires_grad


@scenario
def global_backward_hooks(t: Any) -> Any:
    m, log = net(t), []
    module = t.nn.modules.module
    handles = [
        module.register_module_full_backward_pre_hook(lambda m, go: log.append(("pre", type(m).__name__))),
        module.register_module_full_backward_hook(lambda m, gi, go: log.append(("post", type(m).__name__, values(gi)))),
    ]
    m.register_full_backward_hook(lambda m, gi, go: log.append("own"))
    m(t.ones(1, 2, requires_grad=True)).sum().backward()
    for handle in handles:
        handle.remove()
    return log


@scenario
def state_dict_hooks(t: Any) -> Any:
    m, log = t.nn.Sequential(net(t)), []
    m[0].register_state_dict_pre_hook(lambda m, prefix, keep: log.append(("pre", prefix, keep)))
    m[0].register_state_dict_post_hook(lambda m, d, prefix, local: log.append(("post", list(d), prefix, local)))
    m._register_state_dict_hook(lambda m, d, prefix, local: OrderedDict((k + "!", v) for k, v in d.items()))
    state = m.state_dict()
    restored = OrderedDict((k[:-1], v) for k, v in state.items())
    m[0].register_load_state_dict_pre_hook(lambda m, d, prefix, *rest: log.append(("load", list(d), prefix, rest[1:])))
    m[0]._register_load_state_dict_pre_hook(lambda d, prefix, *rest: d.pop(prefix + "scale"))
    m[0].register_load_state_dict_post_hook(lambda m, keys: log.append(("after", list(keys.missing_keys))))
    m.register_load_state_dict_post_hook(lambda m, keys: keys.missing_keys.clear())
    return log, list(state), values(tuple(m.load_state_dict(restored)))


@scenario
def state_dict_forms(t: Any) -> Any:
    m = net(t)
    given: dict[str, Any] = {}
    into = m.state_dict(destination=given, prefix="pre.", keep_vars=True)
    kept = m.state_dict(keep_vars=True)
    return (
        into is given,
        list(given),
        kept["first.weight"] is m.first.weight,
        m.state_dict()["first.weight"].requires_grad,
        m.state_dict()["first.weight"].data_ptr() == m.first.weight.data_ptr(),
        dict(m.state_dict()._metadata),
    )


@scenario
def load_assigns(t: Any) -> Any:
    m, other = net(t), net(t)
    m.first.weight.requires_grad_(False)
    state = {k: v.clone() for k, v in other.state_dict().items()}
    before = m.second.weight
    m.load_state_dict(state, assign=True)
    return (
        m.second.weight is before,
        m.second.weight.data_ptr() == state["second.weight"].data_ptr(),
        m.first.weight.requires_grad,
        m.second.weight.requires_grad,
        type(m.scale).__name__,
        m.scale is state["scale"],
    )


@scenario
def load_copies(t: Any) -> Any:
    m = net(t)
    before, version = m.first.weight, m.first.weight._version
    m.load_state_dict({k: v + 1 for k, v in m.state_dict().items()})
    return m.first.weight is before, m.first.weight._version - version, values(m.state_dict())


@scenario
def extra_state(t: Any) -> Any:
    class Extra(t.nn.Module):  # type: ignore[misc, name-defined]
        state = 3

        def get_extra_state(self) -> Any:
            return {"state": self.state}

        def set_extra_state(self, state: Any) -> None:
            self.state = state["state"]

    m, other = t.nn.Sequential(Extra()), t.nn.Sequential(Extra())
    m[0].state = 5
    saved = m.state_dict()
    other.load_state_dict(saved)
    found = other.load_state_dict({}, strict=False)
    refused = t.nn.Sequential(t.nn.ReLU()).load_state_dict(saved, strict=False)
    return list(saved), other[0].state, values(tuple(found)), values(tuple(refused))


@scenario
def batch_norm_of_version_one(t: Any) -> Any:
    m = t.nn.Sequential(t.nn.BatchNorm1d(2))
    m[0].num_batches_tracked.fill_(7)
    old = OrderedDict((k, v) for k, v in m.state_dict().items() if "num" not in k)
    found = m.load_state_dict(old)
    return values(tuple(found)), values(m[0].num_batches_tracked)


@scenario
def walking(t: Any) -> Any:
    shared = linear(t)
    m = t.nn.Sequential(shared, t.nn.ModuleDict({"a": shared, "b": net(t)}))
    m.register_parameter("none", None)
    return (
        [n for n, _ in m.named_modules()],
        [n for n, _ in m.named_modules(remove_duplicate=False)],
        [n for n, _ in m.named_modules(prefix="p")],
        [n for n, _ in m.named_parameters()],
        [n for n, _ in m.named_parameters(prefix="p", recurse=False)],
        [n for n, _ in m.named_parameters(remove_duplicate=False)],
        [n for n, _ in m.named_buffers()],
        [n for n, _ in m.named_children()],
        [type(c).__name__ for c in m.children()],
        len(list(m.parameters())),
        len(list(m.modules())),
    )


@scenario
def attributes(t: Any) -> Any:
    m = net(t)
    m.first = None
    m.scale = None
    m.other = t.nn.Parameter(t.ones(1))
    m.other = None
    m.plain = 3
    m.plain = linear(t)
    m.passing = t.zeros(1)
    m.kept = t.nn.Buffer(t.ones(1))
    m.lost = t.nn.Buffer(t.ones(1), persistent=False)
    found = [list(m._parameters), list(m._buffers), list(m._modules), sorted(m._non_persistent_buffers_set)]
    m.scale = t.nn.Parameter(t.ones(1))
    del m.second, m.kept
    m.plain = t.nn.Parameter(t.ones(1))
    again = [list(m._parameters), list(m._buffers), list(m._modules), sorted(m._non_persistent_buffers_set)]
    return found, again, "plain" in dir(m), hasattr(m, "second"), m.first


@scenario
def modes_and_gradients(t: Any) -> Any:
    m = net(t)
    m(t.ones(1, 2)).sum().backward()
    flags = [m.training, m.eval() is m, m.first.training, m.train().first.training]
    m.zero_grad(set_to_none=False)
    zeros = values([p.grad for p in m.parameters()])
    m.zero_grad()
    nones = values([p.grad for p in m.parameters()])
    frozen = [p.requires_grad for p in m.requires_grad_(False).parameters()]
    names: list[str] = []
    m.apply(lambda c: names.append(type(c).__name__))
    return flags, zeros, nones, frozen, names


@scenario
def conversions(t: Any) -> Any:
    m = net(t)
    m.register_buffer("count", t.tensor(3))
    before = m.first.weight
    m(t.ones(1, 2)).sum().backward()

    def kinds() -> Any:
        return [str(v.dtype) for v in m.state_dict().values()] + [str(m.first.weight.grad.dtype)]

    seen = [kinds()]
    for convert in (
        lambda: m.double(), lambda: m.to(t.float16), lambda: m.float(), lambda: m.to("cpu", t.float64),
        lambda: m.to(device="cpu"), lambda: m.to(t.ones(1)), lambda: m.to(dtype=t.float64, non_blocking=True),
        lambda: m.bfloat16(), lambda: m.half(), lambda: m.type(t.float32), lambda: m.cpu(),
        lambda: m.to(None, t.float64),
    ):  # fmt: skip
        seen.append([convert() is m, *kinds()])
    return seen, m.first.weight is before, m.first.weight.requires_grad, m.first.weight.is_leaf


@scenario
def sequential(t: Any) -> Any:
    def kinds(s: Any) -> Any:
        return [(n, type(c).__name__) for n, c in s.named_children()]

    relu, tanh, sig = t.nn.ReLU, t.nn.Tanh, t.nn.Sigmoid
    s = t.nn.Sequential(OrderedDict(a=relu(), b=tanh()))
    log = [kinds(s), kinds(s[1:]), type(s[-1]).__name__, len(s)]
    s[0] = sig()
    log.append(kinds(s))
    s = t.nn.Sequential(relu(), tanh(), sig())
    del s[1]
    log.append(kinds(s))
    s.append(tanh())
    s.insert(0, sig())
    s.insert(-1, t.nn.GELU())
    log.append(kinds(s))
    s.extend(t.nn.Sequential(relu(), relu()))
    log.append([type(s.pop(-1)).__name__, type(s.pop(0)).__name__, kinds(s)])
    del s[1:3]
    log.append(kinds(s))
    log += [kinds(s + t.nn.Sequential(sig())), kinds(s * 2), kinds(2 * s)]
    s += t.nn.Sequential(sig())
    s *= 2
    log.append(kinds(s))
    return log, [type(c).__name__ for c in s]


@scenario
def module_list(t: Any) -> Any:
    def kinds(s: Any) -> Any:
        return [(n, type(c).__name__) for n, c in s.named_children()]

    relu, tanh, sig = t.nn.ReLU, t.nn.Tanh, t.nn.Sigmoid
    s = t.nn.ModuleList([relu(), tanh(), sig()])
    log = [kinds(s), kinds(s[::2]), type(s[-1]).__name__, len(s), kinds(s + t.nn.ModuleList([relu()]))]
    s[-1] = relu()
    s.insert(1, sig())
    s += [tanh()]
    log.append(kinds(s))
    del s[0]
    del s[1:3]
    log.append([kinds(s), type(s.pop(0)).__name__, kinds(s.append(relu())), "0" in dir(s)])
    return log


@scenario
def module_dict(t: Any) -> Any:
    d = t.nn.ModuleDict([("a", t.nn.ReLU()), ("b", t.nn.Tanh())])
    d.update({"c": t.nn.Sigmoid(), "a": t.nn.GELU()})
    log = [list(d), [type(v).__name__ for v in d.values()], [k for k, _ in d.items()], "a" in d, len(d), list(d.keys())]
    log.append(type(d.pop("b")).__name__)
    del d["c"]
    log.append(list(d))
    d.clear()
    return log, len(d)


@scenario
def parameter_containers(t: Any) -> Any:
    p = t.nn.ParameterList([t.ones(1), t.nn.Parameter(t.ones(2)), 3])
    p.append(t.zeros(1))
    p[0] = t.full((1,), 5.0)
    p += [t.ones(3)]
    log: list[Any] = [len(p), values(list(p)), [n for n, _ in p.named_parameters()], values(list(p[1:3]))]
    log.append(values(p[-1]))
    d = t.nn.ParameterDict({"b": t.ones(1), "a": t.ones(2)})
    d["c"] = 3
    d.update([("e", t.ones(1)), ("d", t.ones(1))])
    log += [list(d), [n for n, _ in d.named_parameters()], values(d.get("a")), d.get("x", 7), d.pop("c")]
    log += [list(d | {"z": 1}), d.popitem()[0], values(d.setdefault("n", t.ones(1))), list(d.copy())]
    log += [list(d.fromkeys(["q"], 1)), list(reversed(d))]
    d.clear()
    return log, len(d)


@scenario
def copies(t: Any) -> Any:
    m = net(t)
    log: list[Any] = []
    m.register_forward_hook(lambda m, a, r: log.append("hook"))
    m.first.weight.requires_grad_(False)
    m(t.ones(1, 2)).sum().backward()
    c = copy.deepcopy(m)
    c(t.ones(1, 2))
    with t.no_grad():
        c.second.bias.zero_()
    shared = t.nn.Sequential(m.first, m.first)
    twin = copy.deepcopy(shared)
    return (
        log,
        values(m.second.bias),
        values(c.state_dict()),
        [p.requires_grad for p in c.parameters()],
        [p.grad is None for p in c.parameters()],
        twin[0] is twin[1],
        sorted(c._non_persistent_buffers_set),
    )


@scenario
def pickled(t: Any) -> Any:
    m = t.nn.Sequential(linear(t), t.nn.BatchNorm1d(2), t.nn.LSTM(2, 2), t.nn.ParameterList([t.ones(1)])).eval()
    m[0].weight.requires_grad_(False)
    c = pickle.loads(pickle.dumps(m))
    flags = [p.requires_grad for p in c.parameters()]
    return repr(c), values(c[0].state_dict()), flags, c.training, list(c.state_dict())


@scenario
def lazy(t: Any) -> Any:
    m = t.nn.Sequential(t.nn.LazyLinear(3), t.nn.LazyBatchNorm1d(), t.nn.LazyLinear(2, bias=False))
    m.double()
    uninitialised = [n for n, p in m.named_parameters() if isinstance(p, t.nn.UninitializedParameter)]
    m(t.ones(4, 5, dtype=t.float64))
    kinds = [type(c).__name__ for c in m]
    fresh = t.nn.Sequential(t.nn.LazyLinear(3), t.nn.LazyBatchNorm1d(), t.nn.LazyLinear(2, bias=False))
    found = fresh.load_state_dict({k: v.float() for k, v in m.state_dict().items()})
    shapes = [tuple(p.shape) for p in fresh.parameters()]
    return uninitialised, kinds, [tuple(p.shape) for p in m.parameters()], values(tuple(found)), shapes


@scenario
def functional_calls(t: Any) -> Any:
    call = t.func.functional_call
    m = net(t)
    m.second.weight = m.first.weight
    weight = t.zeros(2, 2, requires_grad=True)
    y = call(m, {"first.weight": weight, "scale": t.full((2,), 2.0)}, t.ones(1, 2), {"factor": 3.0})
    y.sum().backward()
    return values(y), values(weight.grad), m.first.weight.grad, values(m.scale), values(m(t.ones(1, 2)))


@pytest.mark.filterwarnings("ignore::Warning:torch")
@pytest.mark.parametrize("name", SCENARIOS)
def test_scenario(name: str) -> None:
    assert values(SCENARIOS[name](rushlight)) == values(SCENARIOS[name](torch))
