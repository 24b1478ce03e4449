"""Every operator of PyTorch's database takes views with a conjugate or negative bit as it takes ordinary tensors."""

import numpy as np
import pytest
from tools.fuzzing.databases import drawn

torch = pytest.importorskip("torch")
methods = pytest.importorskip("torch.testing._internal.common_methods_invocations", reason="needs PyTorch's database")

import rushlight  # noqa: E402

SAMPLES = 1
LAYOUT = {"empty_like", "new_empty", "new_empty_strided", "empty", "empty_strided", "empty_permuted"}  # values are free
REFUSED = {"view_as_real", "view"}  # of conjugates, of other dtypes: tests/ops/test_conjugate_views.py


def function_of(name):
    found = rushlight
    for part in name.split("."):
        found = getattr(found, part, None)
    return found if found is not None else getattr(rushlight.Tensor, name, None)


def operators(dtype):
    chosen = {}
    for op in methods.op_db:
        usual = dtype in op.supported_dtypes("cpu") and not op.name.startswith(
            ("_", "sparse", "jiterator", "to_sparse")
        )
        if usual and op.name not in LAYOUT | REFUSED and function_of(op.name) is not None:
            chosen.setdefault(op.name, op)
    return sorted(chosen.items())


def signed(array, kind):
    """A view with a bit, of memory that lies as that of the array; its elements are those of the array."""
    if kind == "conj" and array.dtype.kind == "c":
        return rushlight.tensor(array.conj()).conj()
    if kind == "neg" and array.dtype.kind == "f":
        return rushlight._neg_view(rushlight.tensor(-array))
    return rushlight.tensor(array)


def lifted(value, make):
    if isinstance(value, torch.Tensor):
        return make(value.detach().resolve_conj().resolve_neg().numpy().copy())
    if isinstance(value, (tuple, list)):
        return type(value)(lifted(v, make) for v in value)
    if isinstance(value, dict):
        return {k: lifted(v, make) for k, v in value.items()}
    return getattr(rushlight, str(value).removeprefix("torch.")) if isinstance(value, torch.dtype) else value


def tensors_in(value):
    if isinstance(value, rushlight.Tensor):
        return [value]
    if isinstance(value, (tuple, list)):
        return [t for v in value for t in tensors_in(v)]
    return [t for v in value.values() for t in tensors_in(v)] if isinstance(value, dict) else []


def result_of(fn, sample, make, grad):
    """Results and gradients of `fn`, and an error's class where it raises."""
    leaves = []

    def leaf(array):
        t = make(array)
        if grad and t.dtype.is_floating_point | t.dtype.is_complex:
            t = t.detach().requires_grad_()
            leaves.append(t)
        return t

    values = lifted((sample.input, *sample.args), leaf)
    kwargs = lifted(sample.kwargs, leaf)
    rushlight.manual_seed(0)
    try:
        outs = tensors_in(fn(*values, **kwargs))
    except Exception as error:
        return type(error), str(error)
    found = [o.detach().resolve_conj().resolve_neg().numpy() for o in outs]
    wanted = [o for o in outs if o.requires_grad]
    if not wanted or not leaves:
        return found
    units = [rushlight.ones_like(o) for o in wanted]
    try:
        grads = rushlight.autograd.grad(wanted, leaves, units, allow_unused=True)
    except Exception as error:  # it has no derivative
        return type(error), str(error)
    return found + [None if g is None else g.resolve_conj().resolve_neg().numpy() for g in grads]


def check_same(found, expected, where):
    assert isinstance(found, list) == isinstance(expected, list), f"{where}: {found} instead of {expected}"
    if not isinstance(expected, list):
        assert found[0] is expected[0], f"{where}: {found} instead of {expected}"
        return
    for f, e in zip(found, expected, strict=True):
        assert (f is None) == (e is None), where
        if e is not None:
            assert f.dtype == e.dtype and f.shape == e.shape, where
            np.testing.assert_allclose(f, e, rtol=1e-9, atol=1e-11, err_msg=where)


def samples_of(op, dtype):
    return drawn(op.sample_inputs, "cpu", dtype, requires_grad=False, most=SAMPLES)


KINDS = [("conj", torch.complex128), ("neg", torch.float64)]
CASES = [(kind, dtype, name, op) for kind, dtype in KINDS for name, op in operators(dtype)]


def by_letter(chosen):
    """Lists of cases, by kind and first letter: a test for each operator would take longer than what it tests."""
    groups = {}
    for case in CASES:
        if chosen(case[3]):
            groups.setdefault(f"{case[0]}-{case[2].removeprefix('nn.functional.')[0]}", []).append(case)
    made = [pytest.param(cases, id=key) for key, cases in sorted(groups.items())]
    return pytest.mark.parametrize("cases", made)


@pytest.mark.filterwarnings("ignore::UserWarning")  # of what is deprecated, once in a process
@by_letter(lambda op: True)
def test_results_and_gradients_are_those_of_resolved_inputs(cases):
    for kind, dtype, name, op in cases:
        for sample in samples_of(op, dtype):
            for grad in (False, True):
                expected = result_of(function_of(name), sample, rushlight.tensor, grad)
                found = result_of(function_of(name), sample, lambda a, kind=kind: signed(a, kind), grad)
                check_same(found, expected, f"{name}, grad={grad}")


def outcome(call, *args, **kwargs):
    """What a call gives, or the class of what it raises, with the same random numbers each time."""
    rushlight.manual_seed(0)
    try:
        return call(*args, **kwargs)
    except Exception as error:
        return type(error)


def turned(t, kind):
    return t.conj() if kind == "conj" else rushlight._neg_view(t)


def check_inplace(kind, name, call, sample):
    plain, view = rushlight.tensor(sample.input.numpy()), signed(sample.input.numpy(), kind)
    args, kwargs = lifted(sample.args, rushlight.tensor), lifted(sample.kwargs, rushlight.tensor)
    base = view._base
    expected, found = outcome(call, plain, *args, **kwargs), outcome(call, view, *args, **kwargs)
    if plain.shape != sample.input.shape:  # addbmm_ grows
        return
    assert (found is view) == (expected is plain), f"{name}: {found} instead of {expected}"
    np.testing.assert_allclose(view.tolist(), plain.tolist(), err_msg=name)
    if base.shape == view.shape:
        np.testing.assert_allclose(turned(base, kind).tolist(), plain.tolist(), err_msg=name)


@by_letter(lambda op: hasattr(rushlight.Tensor, getattr(op.inplace_variant, "__name__", "?")))
def test_in_place_forms_write_through(cases):
    for kind, dtype, name, op in cases:
        for sample in samples_of(op, dtype):
            check_inplace(kind, name, getattr(rushlight.Tensor, op.inplace_variant.__name__), sample)


def check_out(kind, name, fn, sample):
    args, kwargs = lifted((sample.input, *sample.args), rushlight.tensor), lifted(sample.kwargs, rushlight.tensor)
    expected = outcome(fn, *args, **kwargs)
    if not isinstance(expected, rushlight.Tensor) or expected.is_complex() != (kind == "conj"):
        return
    memory = rushlight.zeros(expected.shape, dtype=expected.dtype)
    if memory.dtype == rushlight.bool:  # which has no negative
        return
    out = turned(memory, kind)
    found = outcome(fn, *args, **kwargs, out=out)
    if found is not TypeError:  # it has no out=
        assert found is out, f"{name}: {found}"
        np.testing.assert_allclose(out.tolist(), expected.tolist(), err_msg=name)
        np.testing.assert_allclose(turned(memory, kind).tolist(), expected.tolist(), err_msg=name)


@by_letter(lambda op: op.supports_out)
def test_out_is_written_through(cases):
    for kind, dtype, name, op in cases:
        for sample in samples_of(op, dtype):
            check_out(kind, name, function_of(name), sample)
