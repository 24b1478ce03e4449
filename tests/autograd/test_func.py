"""Function transformations: what they refuse, what they leave behind, and where they go beyond PyTorch."""

import gc
import tracemalloc
import weakref

import pytest

import rushlight as torch
from rushlight import func
from rushlight.autograd import functional


def cube(a):
    return (a**3).sum()


def vector():
    return torch.tensor([1.0, 2.0, 3.0])


def test_a_captured_tensor_is_not_changed_silently():
    kept = torch.zeros(3)

    def f(a):
        kept.add_(a)
        return kept.sum()

    with pytest.raises(RuntimeError, match=r"in-place operation \(add_\) that would mutate a captured Tensor"):
        func.grad(f)(vector())
    assert not kept.requires_grad


def test_tensors_made_inside_may_be_changed():
    def f(a):
        made = torch.zeros(3)
        made[:2] = a[1:]
        made.mul_(a)
        return made.sum()

    assert func.grad(f)(vector()).tolist() == [2, 1 + 3, 2]


def test_tensors_made_inside_may_be_changed_and_saved():
    def f(a):
        made = torch.zeros(3)
        made[:2] = a[1:]
        return (made * made).sum()

    assert func.grad(f)(vector()).tolist() == [0, 4, 6]

    def g(a, kept):
        return [kept.append(torch.zeros(3).add_(a)), kept[-1].sum()][1]

    assert func.grad(g)(vector(), []).tolist() == [1, 1, 1]


def test_a_captured_buffer_is_not_changed_silently():
    class Counting(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("total", torch.zeros(3))

        def forward(self, a):
            self.total += a
            return self.total.sum()

    model = Counting()
    with pytest.raises(RuntimeError, match="mutate a captured Tensor"):
        func.grad(lambda a: model(a))(vector())
    with pytest.raises(RuntimeError, match="mutate a captured Tensor"):
        func.vjp(model, vector())
    assert func.grad(lambda a: func.functional_call(model, {"total": torch.zeros(3)}, (a,)))(vector()).tolist() == [
        1,
        1,
        1,
    ]


def test_inputs_are_leaves():
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        func.grad(lambda a: a.add_(1).sum())(vector())


def test_backward_inside_is_refused():
    def f(a):
        out = cube(a)
        out.backward()
        return out

    with pytest.raises(RuntimeError, match="backward\\(\\) called inside a function transformation"):
        func.grad(f)(vector())
    (vector().requires_grad_() ** 2).sum().backward()


def test_results_are_in_no_graph_that_nobody_asked_for():
    for result in (func.grad(cube)(vector()), func.jacrev(cube)(vector()), func.hessian(cube)(vector()),
                   func.vjp(cube, vector())[0], func.jvp(cube, (vector(),), (vector(),))[1]):  # fmt: skip
        assert not result.requires_grad and result.is_leaf
    w = vector().requires_grad_()
    assert func.grad(cube)(w).requires_grad
    with torch.no_grad():
        assert not func.grad(lambda a: (a * w).sum())(vector()).requires_grad
    _, aux = func.grad(lambda a: (cube(a), (a * 2, w * 2)), has_aux=True)(vector())
    assert not aux[0].requires_grad and aux[1].requires_grad
    aux[1].sum().backward()


def test_derivatives_that_do_not_depend_on_what_requires_grad_require_none():
    x = vector().requires_grad_()
    assert not func.hessian(lambda a: (a * a).sum())(x).requires_grad
    assert func.hessian(lambda a: (a * a * a).sum())(x).requires_grad


def test_the_hessian_of_a_norm_has_a_derivative():
    gradients = []
    for norm in (lambda a: a.norm(), lambda a: (a * a).sum() ** 0.5):
        x = vector().requires_grad_()
        (gradient,) = torch.autograd.grad((func.hessian(norm)(x) ** 2).sum(), x)
        gradients.append(gradient)
    assert gradients[0].any() and torch.allclose(*gradients)


OF_DERIVATIVES = {
    "grad": lambda f, x: func.grad(f)(x),
    "grad of grad": lambda f, x: func.grad(lambda a: func.grad(f)(a).sum())(x),
    "hessian": lambda f, x: func.hessian(f)(x),
    "jacobian of gradients": lambda f, x: func.jacfwd(func.grad(f))(x),
    "rows of rows": lambda f, x: func.jacrev(func.jacrev(f))(x),
    "rows of columns": lambda f, x: func.jacrev(func.jacfwd(f))(x),
    "tangents of rows": lambda f, x: func.jvp(func.jacrev(f), (x,), (x,))[1],
    "gradients of tangents": lambda f, x: func.grad(lambda a: func.jvp(f, (a,), (a,))[1])(x),
    "vjp": lambda f, x: func.vjp(f, x)[1](torch.tensor(1.0, dtype=torch.float64))[0],
    "linearize": lambda f, x: func.linearize(f, x)[1](x),
    "of each sample": lambda f, x: func.vmap(func.hessian(lambda a: f(a[None])))(x),
}


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("name", OF_DERIVATIVES)
def test_derivatives_are_the_same_where_no_gradients_are_recorded(name, mode):
    x, scale = vector(), vector() * 2

    def f(a):
        return (a * a.sin() * scale).sum() + a.exp().prod()

    expected = OF_DERIVATIVES[name](f, x)
    with mode():
        made = x.clone()
        scale = scale.clone()
        for given in (x, made, made.clone().requires_grad_(), x.clone().detach()):
            found = OF_DERIVATIVES[name](f, given)
            torch.testing.assert_close(found.clone(), expected)
            assert not found.requires_grad and not found.is_inference()
    torch.testing.assert_close(OF_DERIVATIVES[name](f, made.detach()).detach(), expected)


def test_what_a_transformation_captured_in_inference_mode_is_still_not_saved_outside_of_it():
    x = vector().requires_grad_()
    with torch.inference_mode():
        scale = vector()
    assert func.grad(lambda a: (a * scale).sum())(x.detach()).tolist() == scale.tolist()
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved"):
        x * scale


def test_auxiliary_results_keep_their_graph():
    w = vector().requires_grad_()

    def f(a):
        y = (a * w).sin()
        return y.sum(), y

    gradient, y = func.grad(f, has_aux=True)(vector())
    (gradient.sum() + y.sum()).backward()
    assert w.grad is not None


def test_nothing_is_left_behind():
    gc.collect()
    gc.disable()
    try:
        x = torch.ones(10)
        seen = []

        def f(a):
            y = a.sin()
            seen.append(weakref.ref(y))
            return (y * a).sum()

        func.grad(f)(x)
        func.vjp(f, x)[1](torch.ones(()))
        func.vmap(func.grad(f))(torch.ones(2, 3))
        func.jvp(func.grad(f), (x,), (x,))
        assert all(ref() is None for ref in seen)
        with pytest.raises(ZeroDivisionError):
            func.grad(lambda a: 1 / 0)(x)
        assert torch.autograd.graph.modes.transform is None
    finally:
        gc.enable()


def test_first_order_frees_as_it_goes():
    """A gradient that nobody differentiates is a plain backward: it keeps no graph of itself."""
    n = 1 << 16

    def f(a):
        for _ in range(20):
            a = a.sin()
        return a.sum()

    def most(call, *args):
        gc.collect()
        tracemalloc.start()
        call(*args)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    x = torch.ones(n)
    y = torch.ones(n, requires_grad=True)
    most(func.grad(f), x)
    plain = most(lambda: torch.autograd.grad(f(y), y))
    assert most(func.grad(f), x) < 1.1 * plain


def test_chunks_bound_the_memory_of_a_jacobian():
    n = 256

    def f(a):
        return (a[:, None] * a[None, :]).sin().sum(1)

    def most(**options):
        gc.collect()
        tracemalloc.start()
        func.jacrev(f, **options)(torch.ones(n))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    most(chunk_size=16)
    assert most(chunk_size=16) < 0.25 * most()


def test_chunks_give_the_same():
    x = torch.linspace(0, 1, 7)
    f = lambda a: {"s": torch.outer(a, a).sin(), "t": a.sum()}
    whole = func.jacrev(f)(x)
    for size in (1, 2, 5, 100):
        parts = func.jacrev(f, chunk_size=size)(x)
        assert torch.allclose(parts["s"], whole["s"]) and torch.allclose(parts["t"], whole["t"])
    g = lambda a: func.jacrev(f, chunk_size=3)(a)["s"].sum()
    assert torch.allclose(func.grad(g)(x), func.grad(lambda a: func.jacrev(f)(a)["s"].sum())(x))


def test_empty_jacobians():
    for jacobian in (func.jacrev(lambda a: a * 2), func.jacfwd(lambda a: a * 2),
                     lambda x: functional.jacobian(lambda a: a * 2, x)):  # fmt: skip
        assert jacobian(torch.ones(0)).shape == (0, 0)


def test_linearize_runs_the_function_once_and_can_be_differentiated():
    runs = []

    def f(a):
        runs.append(1)
        return a**3

    y, product = func.linearize(f, vector())
    for _ in range(3):
        assert product(torch.ones(3)).tolist() == [3, 12, 27]
    assert len(runs) == 1 and y.tolist() == [1, 8, 27] and not y.requires_grad
    slope = func.grad(lambda a: func.linearize(f, a)[1](torch.ones(3)).sum())
    assert slope(vector()).tolist() == [6, 12, 18]


def test_a_view_that_a_custom_function_marked_is_a_constant():
    class Marked(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x[...]

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.mark_non_differentiable(output)

        @staticmethod
        def jvp(ctx, tangent):
            return None

    for x in (vector(), vector().requires_grad_()):
        assert func.vjp(Marked.apply, x)[1](torch.ones(3))[0].tolist() == [0, 0, 0]
        assert func.linearize(Marked.apply, x)[1](torch.ones(3)).tolist() == [0, 0, 0]
        assert not func.jacrev(Marked.apply)(x).any() and not func.jacfwd(Marked.apply)(x).any()
        assert func.grad(lambda a: (Marked.apply(a) * a).sum())(x).tolist() == x.tolist()


def test_the_pullback_can_be_called_again_and_differentiated():
    _, pullback = func.vjp(lambda a: a**3, vector())
    assert [pullback(torch.ones(3))[0].tolist() for _ in range(2)] == [[3, 12, 27]] * 2
    assert func.jacrev(lambda g: pullback(g)[0])(torch.ones(3)).diagonal().tolist() == [3, 12, 27]


def test_saved_tensor_hooks_are_no_obstacle():
    with torch.autograd.graph.save_on_cpu():
        assert func.grad(cube)(vector()).tolist() == [3, 12, 27]
        assert func.vmap(func.grad(lambda a: a**3))(vector()).tolist() == [3, 12, 27]
        assert func.hessian(cube)(vector()).diagonal().tolist() == [6, 12, 18]


def test_requires_grad_inside():
    def f(a):
        b = torch.ones(3).requires_grad_()
        (g,) = torch.autograd.grad((b**2 * a).sum(), b, create_graph=True)
        return g.sum()

    assert func.grad(f)(vector()).tolist() == [2, 2, 2]


def test_functional_call_with_tied_weights_and_errors():
    class Tied(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(torch.ones(2))
            self.t = self.w
            self.register_buffer("b", torch.zeros(2))

        def forward(self, x):
            self.b.add_(1)
            return self.w * x + self.t + self.b

    model, x, zeros = Tied(), torch.ones(2), torch.zeros(2)
    call = func.functional_call
    assert call(model, {"w": zeros}, x).tolist() == [1, 1]
    assert call(model, {"w": zeros}, x, tie_weights=False).tolist() == [3, 3]
    with pytest.raises(ValueError, match="which are tied"):
        call(model, {"w": zeros, "t": torch.ones(2)}, x)
    buffer = torch.zeros(2)
    assert call(model, [{"w": zeros}, {"b": buffer}], (x,)).tolist() == [1, 1]
    assert buffer.tolist() == [1, 1] and model.b.tolist() == [2, 2] and model.w.tolist() == [1, 1]
    call(model, {"unknown": zeros}, x)
    assert not hasattr(model, "unknown")
    with pytest.raises(KeyError, match="empty"):
        call(model, {"": zeros}, x)
    with pytest.warns(FutureWarning, match="deprecated"):
        torch.nn.utils.stateless.functional_call(model, {"w": zeros}, x)


def test_an_ensemble():
    models = [torch.nn.Linear(3, 2) for _ in range(4)]
    params, buffers = func.stack_module_state(models)
    x = torch.randn(5, 3)
    out = func.vmap(lambda p, b: func.functional_call(models[0], (p, b), (x,)))(params, buffers)
    assert torch.allclose(out, torch.stack([m(x) for m in models]), atol=1e-6)
    out.sum().backward()
    assert params["weight"].grad.shape == (4, 2, 3)
    models[0].weight.requires_grad_(False)
    with pytest.raises(RuntimeError, match=r"same \.requires_grad"):
        func.stack_module_state(models)


def test_batch_norm_without_running_statistics():
    model = torch.nn.Sequential(torch.nn.BatchNorm1d(3), torch.nn.Linear(3, 1))
    assert func.replace_all_batch_norm_modules_(model) is model and model[0].running_mean is None
    params = {name: p.detach() for name, p in model.named_parameters()}
    out = func.vmap(lambda a: func.functional_call(model, params, (a,)))(torch.randn(2, 4, 3))
    assert out.shape == (2, 4, 1)


def test_what_is_behind_a_batched_tensor():
    seen = []
    x = torch.arange(6.0).reshape(2, 3)
    func.vmap(
        func.vmap(lambda a: (seen.append(func.debug_unwrap(a)), seen.append(func.debug_unwrap(a, recurse=False)), a)[2])
    )(x)
    assert torch.equal(seen[0], x) and seen[1].shape == (3,)


def test_a_pullback_made_without_gradients_can_be_differentiated_where_it_is_called_with_them():
    x = torch.tensor([0.5, 1.0], requires_grad=True)
    with torch.no_grad():
        out, pull = torch.func.vjp(torch.sin, x)
        (silent,) = pull(torch.ones(2))
    assert not out.requires_grad and not silent.requires_grad
    (g,) = pull(torch.ones(2))
    (second,) = torch.autograd.grad(g.sum(), x)
    assert torch.allclose(second, -x.sin())


def test_what_is_returned_as_it_was_given_is_what_was_given():
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    (same, more), pullback = func.vjp(lambda x, y: (x, y * 3), x, y)
    assert same is x and more is not y
    assert pullback((torch.ones(2), torch.ones(2)))[1].tolist() == [3, 3]
    gradient, (value, aux) = func.grad_and_value(lambda x: (x.sum(), x), has_aux=True)(x)
    assert aux is x and value == 2 and gradient.tolist() == [1, 1]
    changed, _ = func.vjp(lambda x: x.clone().mul_(2), x)
    assert changed is not x and changed.tolist() == [2, 2]


@pytest.mark.parametrize("transform", [func.jacrev, lambda f: lambda x: func.vjp(f, x)])
def test_outputs_without_a_gradient_are_refused_by_reverse_mode(transform):
    with pytest.raises(RuntimeError, match="got Tensor with dtype"):
        transform(lambda x: (x, x > 0))(torch.ones(2))
    values, _, mask = func.vjp(lambda x: (x * 2, x > 0), torch.ones(2), has_aux=True)
    assert values.tolist() == [2, 2] and mask.all()


def test_a_jvp_of_a_custom_function_need_not_return_a_view_inside_of_func():
    class Same(torch.autograd.Function):
        @staticmethod
        def forward(x):
            return x

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def jvp(ctx, t):
            return t * 2

    assert func.jvp(Same.apply, (torch.ones(1),), (torch.ones(1),))[1].tolist() == [2]


def test_changes_of_what_was_given_are_counted():
    def changes(x):
        with torch.no_grad():
            x.mul_(2)
        return x.sum()

    x = torch.ones(2)
    func.grad(changes)(x)
    assert x.tolist() == [2, 2] and x._version == 1


def test_a_complex_value_that_depends_on_no_input_has_gradients_of_zero():
    x = torch.tensor([1j], requires_grad=True)
    assert func.grad(lambda x, y: y.sum())(x, x).tolist() == [0]
    with pytest.raises(RuntimeError, match="only for real scalar outputs"):
        func.grad(lambda x: (x * x).sum())(x)
