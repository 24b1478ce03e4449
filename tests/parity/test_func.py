"""func gives what torch.func gives: values, structures, errors, however transformations nest."""

from typing import Any

import pytest
from tests.parity.derivatives import check

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity


def x(t: Any) -> Any:
    return t.tensor([1.0, 2.0, 3.0])


def y(t: Any) -> Any:
    return t.tensor([2.0, 0.5, 1.0])


def s(t: Any) -> Any:
    return t.tensor(2.0)


def rows(t: Any) -> Any:
    return t.tensor([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]])


def weight(t: Any) -> Any:
    return t.tensor([[0.3, -0.2, 0.5], [0.1, 0.9, -0.4]])


def v(t: Any) -> Any:
    return t.tensor([0.5, -1.0])


def w(t: Any) -> Any:
    return t.tensor([0.2, 0.3, -0.1], requires_grad=True)


def cube(a: Any) -> Any:
    return (a**3).sum()


def dot(a: Any, b: Any) -> Any:
    return (a * b).sum()


def loss(W: Any, v: Any, x: Any, y: Any) -> Any:
    return ((x @ W.T).tanh() @ v - y) ** 2


def model(t: Any) -> Any:
    m = t.nn.Sequential(t.nn.Linear(3, 2), t.nn.Tanh(), t.nn.Linear(2, 1))
    with t.no_grad():
        for k, p in enumerate(m.parameters()):
            p.copy_(t.linspace(-1, 1, p.numel()).reshape(p.shape) * (k + 1) / 3)
    return m


def parameters(t: Any, detached: bool = True) -> Any:
    m = model(t)
    return m, {k: p.detach() if detached else p for k, p in m.named_parameters()}


def pulled(t: Any, output: Any, cotangent: Any) -> Any:
    return output[0], output[1](cotangent), *output[2:]


def no_grad_inside(t: Any) -> Any:
    def f(a: Any) -> Any:
        with t.no_grad():
            c = a * 2
        return (a * c).sum()

    return f


def quiet(t: Any, call: Any) -> Any:
    with t.no_grad():
        return call()


def in_place(a: Any) -> Any:
    b = a.clone()
    b[0] = b[1] * 2
    b.mul_(3)
    return (b * b).sum()


def call_model(t: Any, wrap: Any, detached: bool = True) -> Any:
    m, p = parameters(t, detached)
    return wrap(lambda p, a: t.func.functional_call(m, p, (a,)), p)


GRAD = {
    "one": lambda t, F: F.grad(cube)(x(t)),
    "keyword": lambda t, F: F.grad(dot)(x(t), b=y(t)),
    "argnums": lambda t, F: F.grad(dot, argnums=1)(x(t), y(t)),
    "argnums tuple": lambda t, F: F.grad(dot, argnums=(1, 0))(x(t), y(t)),
    "argnums negative": lambda t, F: F.grad(dot, argnums=-1)(x(t), y(t)),
    "argnums too large": lambda t, F: F.grad(dot, argnums=2)(x(t), y(t)),
    "argnums twice": lambda t, F: F.grad(dot, argnums=(0, 0))(x(t), y(t)),
    "argnums string": lambda t, F: F.grad(dot, argnums="a")(x(t), y(t)),
    "argnums string inside": lambda t, F: F.grad(dot, argnums=(0, "a"))(x(t), y(t)),
    "argnums none": lambda t, F: F.grad(dot, argnums=())(x(t), y(t)),
    "aux": lambda t, F: F.grad(lambda a: (cube(a), {"k": a * 2, "n": [a]}), has_aux=True)(x(t)),
    "aux number": lambda t, F: F.grad(lambda a: (cube(a), 3), has_aux=True)(x(t)),
    "aux missing": lambda t, F: F.grad(cube, has_aux=True)(x(t)),
    "aux of three": lambda t, F: F.grad(lambda a: (cube(a), 1, 2), has_aux=True)(x(t)),
    "no scalar": lambda t, F: F.grad(lambda a: a * 2)(x(t)),
    "one element": lambda t, F: F.grad(lambda a: a.sum().reshape(1))(x(t)),
    "number out": lambda t, F: F.grad(lambda a: 3.0)(x(t)),
    "tuple out": lambda t, F: F.grad(lambda a: (cube(a),))(x(t)),
    "tree": lambda t, F: F.grad(lambda d: (d["a"] * d["b"][0]).sum())({"a": x(t), "b": [y(t)]}),
    "number in a tree": lambda t, F: F.grad(lambda d: (d["a"] * d["b"]).sum())({"a": x(t), "b": 3.0}),
    "number": lambda t, F: F.grad(dot, argnums=1)(x(t), 3.0),
    "independent": lambda t, F: F.grad(lambda a: t.tensor(1.0))(x(t)),
    "one independent": lambda t, F: F.grad(lambda a, b: a.sum(), argnums=(0, 1))(x(t), y(t)),
    "captured": lambda t, F: (lambda w: F.grad(lambda a: (a * w).sum())(x(t)))(w(t)),
    "captured beside": lambda t, F: (lambda w: F.grad(lambda a: (a * a).sum() + w.sum())(x(t)))(w(t)),
    "of a leaf": lambda t, F: F.grad(cube)(w(t)),
    "no_grad outside": lambda t, F: quiet(t, lambda: F.grad(lambda q: F.grad(cube)(q).sum())(w(t))),
    "no_grad inside": lambda t, F: F.grad(no_grad_inside(t))(x(t)),
    "detach": lambda t, F: F.grad(lambda b: F.grad(lambda a: (a.detach() * a).sum())(b).sum())(x(t)),
    "leaf in place": lambda t, F: F.grad(lambda a: a.add_(1).sum())(x(t)),
    "third": lambda t, F: F.grad(F.grad(F.grad(lambda a: a.sin() * a**2)))(s(t)),
    "confusion": lambda t, F: F.grad(lambda a: a * F.grad(lambda b: a + b)(s(t)))(s(t)),
    "value": lambda t, F: F.grad_and_value(cube)(x(t)),
    "value and aux": lambda t, F: F.grad_and_value(lambda a: (cube(a), a), has_aux=True)(x(t)),
    "autograd.grad inside": lambda t, F: F.grad(
        lambda a: t.autograd.grad((a * a).sum(), a, create_graph=True)[0].sum())(x(t)),
    "index": lambda t, F: F.grad(lambda a: a[0] * a[1:].sum())(x(t)),
    "complex": lambda t, F: F.grad(lambda a: (a * a.conj()).real.sum())(t.complex(x(t), y(t))),
}  # fmt: skip
VJP = {
    "one": lambda t, F: pulled(t, F.vjp(lambda a: a * a, x(t)), t.ones(3)),
    "several": lambda t, F: pulled(t, F.vjp(lambda a, b: (a * b, a.sum()), x(t), y(t)), (t.ones(3), t.ones(()))),
    "dict": lambda t, F: pulled(t, F.vjp(lambda a, b: {"p": a * b}, x(t), y(t)), {"p": t.ones(3)}),
    "twice": lambda t, F: [F.vjp(lambda a: a * a, x(t))[1](g) for g in (t.ones(3), y(t))],
    "structure": lambda t, F: pulled(t, F.vjp(lambda a: a * a, x(t)), (t.ones(3),)),
    "shape": lambda t, F: pulled(t, F.vjp(lambda a: a * a, x(t)), t.ones(2)),
    "number": lambda t, F: F.vjp(lambda a: a, 3),
    "number out": lambda t, F: F.vjp(lambda a: 3, x(t)),
    "number among outputs": lambda t, F: F.vjp(lambda a: (a, 3), x(t)),
    "aux": lambda t, F: pulled(t, F.vjp(lambda a: (a * a, {"u": a.sum()}), x(t), has_aux=True), t.ones(3)),
    "aux missing": lambda t, F: F.vjp(lambda a: a * a, x(t), has_aux=True),
    "tree": lambda t, F: pulled(t, F.vjp(lambda d: d["a"] * d["b"], {"a": x(t), "b": y(t)}), t.ones(3)),
    "in vmap": lambda t, F: F.vmap(lambda a, b: F.vjp(lambda q: (q * q).cumsum(0), a)[1](b)[0])(rows(t), rows(t)),
    "of vmap": lambda t, F: F.vmap(F.vjp(lambda q: (q * q).cumsum(0), rows(t)[0])[1])(t.eye(3)),
}
JVP = {
    "one": lambda t, F: F.jvp(lambda a: a * a, (x(t),), (y(t),)),
    "several": lambda t, F: F.jvp(lambda a, b: (a * b, {"z": a.sum()}), (x(t), y(t)), (y(t), x(t))),
    "no tuple": lambda t, F: F.jvp(lambda a: a * a, x(t), y(t)),
    "structure": lambda t, F: F.jvp(lambda a, b: a * b, (x(t), y(t)), (y(t),)),
    "empty": lambda t, F: F.jvp(lambda: 1, (), ()),
    "number": lambda t, F: F.jvp(lambda a: a, (3.0,), (1.0,)),
    "number out": lambda t, F: F.jvp(lambda a: 3, (x(t),), (y(t),)),
    "independent": lambda t, F: F.jvp(lambda a: t.ones(2), (x(t),), (y(t),)),
    "strict": lambda t, F: F.jvp(lambda a: t.ones(2), (x(t),), (y(t),), strict=True),
    "aux": lambda t, F: F.jvp(lambda a: (a * a, a * 3), (x(t),), (y(t),), has_aux=True),
    "aux missing": lambda t, F: F.jvp(lambda a: a * a, (x(t),), (y(t),), has_aux=True),
    "of grad": lambda t, F: F.jvp(F.grad(cube), (x(t),), (y(t),)),
    "in grad": lambda t, F: F.grad(lambda a: F.jvp(cube, (a,), (y(t),))[1])(x(t)),
    "in vmap": lambda t, F: F.vmap(lambda a, b: F.jvp(lambda q: q**2, (a,), (b,)))(x(t), y(t)),
    "nested": lambda t, F: F.jvp(lambda a: F.jvp(lambda b: b**3 * a, (a,), (t.ones(()),))[1], (s(t),), (t.ones(()),)),
    "captured": lambda t, F: (lambda w: F.jvp(lambda a: (a * w).sin(), (x(t),), (y(t),)))(w(t)),
}
JACOBIANS = {
    "jacrev": lambda t, F: F.jacrev(lambda a: a * a)(x(t)),
    "jacrev several": lambda t, F: F.jacrev(lambda a, b: (a * b, a.sum()), argnums=(0, 1))(x(t), y(t)),
    "jacrev tree": lambda t, F: F.jacrev(lambda d: {"o": d["a"] * d["b"]})({"a": x(t), "b": y(t)}),
    "jacrev second": lambda t, F: F.jacrev(lambda a, b: (a * b, a.sum()), argnums=1)(x(t), y(t)),
    "jacrev aux": lambda t, F: F.jacrev(lambda a: (a * a, a * 3), has_aux=True)(x(t)),
    "jacrev chunks": lambda t, F: F.jacrev(lambda a: t.outer(a, a), chunk_size=2)(x(t)),
    "jacrev one by one": lambda t, F: F.jacrev(lambda a: a * a, chunk_size=1)(x(t)),
    "jacrev chunk 0": lambda t, F: F.jacrev(lambda a: a * a, chunk_size=0)(x(t)),
    "jacrev number out": lambda t, F: F.jacrev(lambda a: (a, 3))(x(t)),
    "jacrev number": lambda t, F: F.jacrev(lambda a: a)(3.0),
    "jacrev argnums": lambda t, F: F.jacrev(lambda a: a, argnums=1)(x(t)),
    "jacrev independent": lambda t, F: F.jacrev(lambda a: t.ones(2))(x(t)),
    "jacrev dtype": lambda t, F: F.jacrev(lambda a: a.double())(x(t)),
    "jacrev scalar": lambda t, F: F.jacrev(lambda a: a.sum())(x(t)),
    "jacrev empty": lambda t, F: F.jacrev(lambda a: a * 2)(t.ones(0)),
    "jacrev complex": lambda t, F: F.jacrev(lambda a: a * a)(t.complex(x(t), y(t))),
    "jacfwd": lambda t, F: F.jacfwd(lambda a: a * a)(x(t)),
    "jacfwd several": lambda t, F: F.jacfwd(lambda a, b: (a * b, a.sum()), argnums=(0, 1))(x(t), y(t)),
    "jacfwd tree": lambda t, F: F.jacfwd(lambda d: {"o": d["a"] * d["b"]})({"a": x(t), "b": y(t)}),
    "jacfwd second": lambda t, F: F.jacfwd(lambda a, b: (a * b, a.sum()), argnums=1)(x(t), y(t)),
    "jacfwd aux": lambda t, F: F.jacfwd(lambda a: (a * a, a * 3), has_aux=True)(x(t)),
    "jacfwd number out": lambda t, F: F.jacfwd(lambda a: 3)(x(t)),
    "jacfwd independent": lambda t, F: F.jacfwd(lambda a: t.ones(2))(x(t)),
    "jacfwd randomness": lambda t, F: F.jacfwd(lambda a: a, randomness="blah")(x(t)),
    "jacfwd scalar": lambda t, F: F.jacfwd(lambda a: a * t.ones(2, 2))(s(t)),
    "jacfwd empty": lambda t, F: F.jacfwd(lambda a: a * 2)(t.ones(0)),
    "hessian": lambda t, F: F.hessian(cube)(x(t)),
    "hessian several": lambda t, F: F.hessian(lambda a, b: (a * a * b).sum(), argnums=(0, 1))(x(t), y(t)),
    "hessian of a vector": lambda t, F: F.hessian(lambda a: a**3)(x(t)),
    "jacrev of jacrev": lambda t, F: F.jacrev(F.jacrev(cube))(x(t)),
    "jacfwd of jacfwd": lambda t, F: F.jacfwd(F.jacfwd(cube))(x(t)),
    "jacrev of jacfwd": lambda t, F: F.jacrev(F.jacfwd(cube))(x(t)),
    "fourth": lambda t, F: F.hessian(F.hessian(lambda a: (a**4).sum()))(v(t)),
}
NESTED = {
    "per sample": lambda t, F: F.vmap(F.grad(loss, argnums=(0, 1)), in_dims=(None, None, 0, 0))(
        weight(t), v(t), rows(t), y(t)[:2]),
    "per sample hessian": lambda t, F: F.vmap(F.hessian(loss, argnums=1), in_dims=(None, None, 0, 0))(
        weight(t), v(t), rows(t), y(t)[:2]),
    "vmap": lambda t, F: F.vmap(F.grad(lambda a: a**3))(x(t)),
    "vmap third": lambda t, F: F.vmap(F.grad(F.grad(F.grad(lambda a: a.sin() * a**2))))(x(t)),
    "vmap of vmap": lambda t, F: F.vmap(F.vmap(F.grad(lambda a: a**3)))(rows(t)),
    "vmap inside": lambda t, F: F.grad(lambda a: F.vmap(lambda q: q**3)(a).sum())(x(t)),
    "between": lambda t, F: F.grad(lambda c: F.vmap(F.grad(lambda q: (q * c).sin()))(v(t)).sum())(s(t)),
    "jacfwd of per sample": lambda t, F: F.jacfwd(
        lambda v: F.vmap(F.grad(loss, argnums=1), in_dims=(None, None, 0, 0))(weight(t), v, rows(t), y(t)[:2]))(v(t)),
    "jacrev of per sample": lambda t, F: F.jacrev(
        lambda v: F.vmap(F.grad(loss, argnums=1), in_dims=(None, None, 0, 0))(weight(t), v, rows(t), y(t)[:2]))(v(t)),
    "autograd around grad": lambda t, F: (lambda w: t.autograd.grad(
        F.grad(lambda a: (a * w).sum() ** 2)(t.ones(3)).sum(), w))(w(t)),
    "autograd around vmap": lambda t, F: (lambda w: t.autograd.grad(
        F.vmap(F.grad(lambda a: (a * w).sum() ** 2))(rows(t)).sum(), w))(w(t)),
    "autograd around jacrev": lambda t, F: (lambda w: t.autograd.grad(
        F.jacrev(lambda a: (a * w).sin())(t.ones(3)).sum(), w))(w(t)),
    "autograd around jacfwd": lambda t, F: (lambda w: t.autograd.grad(
        F.jacfwd(lambda a: (a * w).sin())(t.ones(3)).sum(), w))(w(t)),
    "autograd around hessian": lambda t, F: (lambda w: t.autograd.grad(
        F.hessian(lambda a: a.sin().sum())(w).sum(), w))(w(t)),
    "in place": lambda t, F: F.grad(in_place)(x(t)),
    "in place, hessian": lambda t, F: F.hessian(in_place)(x(t)),
    "in place, vmap": lambda t, F: F.vmap(F.grad(in_place))(rows(t)),
    "in place, vmap of hessian": lambda t, F: F.vmap(F.hessian(in_place))(rows(t)),
    "in place, jacrev of jacrev": lambda t, F: F.jacrev(F.jacrev(in_place))(x(t)),
    "in place, jvp of vmap": lambda t, F: F.jvp(F.vmap(F.grad(in_place)), (rows(t),), (t.ones(2, 3),)),
    "captured by vmap of grad": lambda t, F: (lambda w: F.vmap(F.grad(dot), in_dims=(0, None))(rows(t), w))(w(t)),
}  # fmt: skip
LINEARIZE = {
    "one": lambda t, F: (lambda o: (o[0], o[1](y(t))))(F.linearize(lambda a: a * a, x(t))),
    "tree": lambda t, F: (lambda o: (o[0], o[1](y(t), x(t))))(F.linearize(lambda a, b: (a * b, {"k": a}), x(t), y(t))),
    "number": lambda t, F: F.linearize(lambda a, b: a * b, x(t), y(t))[1](y(t)),
    "shape": lambda t, F: F.linearize(lambda a: a * a, x(t))[1](y(t)[:2]),
    "dtype": lambda t, F: F.linearize(lambda a: a * a, x(t))[1](y(t).double()),
    "vmap": lambda t, F: F.vmap(F.linearize(lambda q: (q * q).cumsum(0), x(t))[1])(t.eye(3)),
    "integers and bools": lambda t, F: (lambda o: (o[0], o[1](y(t))))(
        F.linearize(lambda a: (a * a, a.argsort(), a > 1, {"number": 3, "largest": a.max(0)}), x(t))),
    "nothing differentiable": lambda t, F: (lambda o: (o[0], o[1](y(t))))(F.linearize(lambda a: a.argmax(), x(t))),
}  # fmt: skip
MODULES = {
    "grad": lambda t, F: call_model(t, lambda f, p: F.grad(lambda p: f(p, rows(t)).pow(2).sum())(p)),
    "grad of leaves": lambda t, F: call_model(t, lambda f, p: F.grad(lambda p: f(p, rows(t)).pow(2).sum())(p), False),
    "per sample": lambda t, F: call_model(
        t, lambda f, p: F.vmap(F.grad(lambda p, a: f(p, a).pow(2).sum()), in_dims=(None, 0))(p, rows(t))),
    "product": lambda t, F: call_model(
        t, lambda f, p: F.jvp(F.grad(lambda p: f(p, rows(t)).pow(2).sum()), (p,), (p,))[1]),
    "jacobian": lambda t, F: call_model(t, lambda f, p: F.jacrev(lambda p: f(p, rows(t)))(p)),
    "tangent kernel": lambda t, F: call_model(
        t, lambda f, p: F.vmap(lambda a: F.jacrev(lambda p: f(p, a))(p))(rows(t))),
    "two dicts": lambda t, F: F.functional_call(t.nn.Linear(2, 1), [{"weight": t.ones(1, 2)}, {"bias": t.ones(1)}],
                                                t.ones(1, 2)),
    "several times": lambda t, F: F.functional_call(t.nn.Linear(2, 1), [{"bias": x(t)}, {"bias": x(t)}], x(t)),
    "no dict": lambda t, F: F.functional_call(t.nn.Linear(2, 1), 3, x(t)),
    "no dicts": lambda t, F: F.functional_call(t.nn.Linear(2, 1), ({}, 3), x(t)),
    "wrong path": lambda t, F: F.functional_call(t.nn.Linear(2, 1), {"a.q": x(t)}, x(t)),
    "missing": lambda t, F: F.functional_call(t.nn.Linear(2, 1), {"weight": t.ones(1, 2)}, t.ones(2), strict=True),
    "no tensor": lambda t, F: F.functional_call(t.nn.Linear(2, 1), {"weight": 3}, t.ones(2)),
    "no models": lambda t, F: F.stack_module_state([]),
    "other models": lambda t, F: F.stack_module_state([t.nn.Linear(1, 1), t.nn.ReLU()]),
    "other modes": lambda t, F: F.stack_module_state([t.nn.ReLU(), t.nn.ReLU().eval()]),
    "stacked": lambda t, F: F.stack_module_state([model(t), model(t)]),
    "stacked buffers": lambda t, F: F.stack_module_state([t.nn.BatchNorm1d(2), t.nn.BatchNorm1d(2)]),
}  # fmt: skip
ALL = {"grad": GRAD, "vjp": VJP, "jvp": JVP, "jacobian": JACOBIANS, "nested": NESTED, "linearize": LINEARIZE,
       "modules": MODULES}  # fmt: skip
CASES = {f"{name}: {what}": case for name, cases in ALL.items() for what, case in cases.items()}
WORDS = {
    "vjp: structure": "Expected pytree structure of cotangents to be the same",
    "jvp: structure": "Expected primals and tangents to have the same python structure",
    "linearize: number": "to have the same argspec as the primals",
}


@pytest.mark.parametrize("name", CASES)
def test_is_as_in_torch_func(name: str) -> None:
    check(lambda t: CASES[name](t, t.func), torch, WORDS.get(name))
