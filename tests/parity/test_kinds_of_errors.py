"""What is refused is refused with PyTorch's class of error: dtypes, sizes beyond all memory, seeds, functions' results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.parity.refusing import raised

import rushlight

reference = pytest.importorskip("torch")
pytestmark = pytest.mark.parity

HUGE = 2**40


def deletes(t: Any) -> None:
    x = t.ones(3)
    del x[0]


def no_order(t: Any) -> dict[str, Callable[[], Any]]:
    c = t.ones(3, dtype=t.complex64)
    plane = t.ones(1, 1, 4, 4, dtype=t.complex64)
    F = t.nn.functional
    return {
        **{name: lambda name=name: getattr(t, name)(c)
           for name in "max min amax amin aminmax argmax argmin sort argsort msort median nanmedian mode unique histc".split()},
        **{name: lambda name=name: getattr(t, name)(c, 1) for name in ("topk", "kthvalue")},
        **{name: lambda name=name: getattr(t, name)(c, 0) for name in ("cummax", "cummin")},
        "max along": lambda: t.max(c, 0), "bucketize": lambda: t.bucketize(c, t.ones(2)),
        "searchsorted": lambda: t.searchsorted(t.ones(2), c), "searchsorted in": lambda: t.searchsorted(c, t.ones(2)),
        "max_pool1d": lambda: F.max_pool1d(plane[0], 2), "max_pool2d": lambda: F.max_pool2d(plane, 2),
        "adaptive_max_pool2d": lambda: F.adaptive_max_pool2d(plane, 2),
    }  # fmt: skip


def other_dtypes(t: Any) -> dict[str, Callable[[], Any]]:
    i, b, c = (t.ones(3, dtype=kind) for kind in (t.int64, t.bool, t.complex64))
    half, F = t.ones(2, 2, dtype=t.float16), t.nn.functional
    return {
        "bernoulli": lambda: t.bernoulli(i), "poisson": lambda: t.poisson(i), "poisson complex": lambda: t.poisson(c),
        "normal": lambda: t.normal(i, 1.0), "normal two": lambda: t.normal(i, i), "rand": lambda: t.rand(3, dtype=t.int64),
        "hardtanh": lambda: F.hardtanh(b), "relu6": lambda: F.relu6(b), "relu": lambda: F.relu(b), "relu complex": lambda: F.relu(c),
        **{name: lambda name=name: getattr(t.linalg, name)(half)
           for name in "eigh svd inv qr eig cholesky det lu slogdet pinv eigvalsh svdvals".split()},
        "solve": lambda: t.linalg.solve(half, half), "lstsq": lambda: t.linalg.lstsq(half, half),
        "cat": lambda: t.cat([t.ones(2)], out=t.empty(2, dtype=t.int64)),
        "stack": lambda: t.stack([t.ones(2)], out=t.empty(1, 2, dtype=t.int64)),
        "hstack": lambda: t.hstack([t.ones(2)], out=t.empty(2, dtype=t.int64)),
        "add": lambda: t.add(t.ones(2), 1, out=t.empty(2, dtype=t.int64)),
        "softmax": lambda: t.softmax(t.ones(3), 0, dtype=t.float64, out=t.empty(3)),
        "isclose": lambda: t.isclose(t.ones(1), t.ones(1), t.ones((), requires_grad=True)),
        "FloatTensor": lambda: type("Own", (t.FloatTensor,), {}),
        "Module.to": lambda: t.nn.Linear(1, 1).to("cpu", copy=False),
        "del": lambda: deletes(t),
    }  # fmt: skip


def too_large(t: Any) -> dict[str, Callable[[], Any]]:
    x = t.ones(1)
    return {
        **{name: lambda name=name: getattr(t, name)(HUGE, HUGE) for name in ("empty", "ones", "rand", "randn", "zeros")},
        "resize_": lambda: t.ones(1).resize_(HUGE, HUGE), "expand": lambda: x.expand(HUGE, HUGE), "eye": lambda: t.eye(HUGE, HUGE),
        "repeat": lambda: x.repeat(HUGE, HUGE), "linspace": lambda: t.linspace(0, 1, 2**62), "randperm": lambda: t.randperm(2**62),
        "broadcast_to": lambda: t.broadcast_to(x, (HUGE, HUGE)), "meta": lambda: t.empty(HUGE, HUGE, device="meta"),
        "pad": lambda: t.nn.functional.pad(x, (2**62, 2**62)),
    }  # fmt: skip


def functions_and_seeds(t: Any) -> dict[str, Callable[[], Any]]:
    integers = t.ones(2, dtype=t.int64)
    return {
        "a word": lambda: t.ones(2).apply_(lambda x: "a"), "a number in a word": lambda: t.ones(2).apply_(lambda x: "1"),
        "nothing": lambda: t.ones(2).apply_(lambda x: None), "of integers": lambda: integers.apply_(lambda x: "1"),
        "of bools": lambda: t.ones(2, dtype=t.bool).apply_(lambda x: "a"), "map_": lambda: t.ones(2).map_(t.ones(2), lambda x, y: "a"),
        "seed": lambda: t.Generator().manual_seed(2**70), "negative seed": lambda: t.Generator().manual_seed(-(2**63) - 1),
    }  # fmt: skip


@pytest.mark.parametrize("cases", [no_order, other_dtypes, too_large, functions_and_seeds], ids=lambda fn: fn.__name__)
def test_classes_of_errors_are_pytorchs(cases: Callable[[Any], dict[str, Callable[[], Any]]]) -> None:
    found = [{name: raised(fn) for name, fn in cases(t).items()} for t in (reference, rushlight)]
    assert found[1] == found[0]
    assert all(found[0].values())


def test_memory_orders_that_are_asked_for() -> None:
    def orders(t: Any) -> list[Any]:
        plain, last = t.contiguous_format, t.channels_last
        x = t.ones(2, 3, 4, 5)
        tensors = [
            t.ones(2, 3),
            t.ones(2, 3).t(),
            t.ones(2, 1),
            x,
            x.to(memory_format=last),
            t.ones(2, 1, 4, 5),
            x.permute(3, 1, 2, 0),
        ]

        def order(of: Any, check: Any) -> Any:
            try:
                return of.dim_order(ambiguity_check=check)
            except RuntimeError:
                return None

        return [order(of, check) for of in tensors for check in (False, True, [plain], [last], [plain, last])]

    assert orders(rushlight) == orders(reference)


def test_uninitialized_parameters_are_asked_for_nothing() -> None:
    def classes(t: Any) -> list[Any]:
        p = t.nn.parameter.UninitializedParameter()
        asked: list[Callable[[], Any]] = [
            lambda: p[0], lambda: p.__setitem__(0, 1), lambda: len(p), lambda: list(p), lambda: 1 in p, lambda: p.__array__(),
            lambda: -p, lambda: p.shape,
        ]  # fmt: skip
        return [raised(fn) for fn in asked]

    assert classes(rushlight) == classes(reference)


@pytest.mark.parametrize("name", ["rand", "randn", "randperm"])
def test_random_numbers_with_out_inside_vmap_are_refused(name: str) -> None:
    for t in (reference, rushlight):
        with pytest.raises(RuntimeError, match="out"):
            t.vmap(lambda x, t=t: getattr(t, name)(3, out=t.empty(3)) + x, randomness="different")(t.ones(2, 3))


class Likeness:
    """No tensor, but one that functions ask."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func.__name__, args, sorted(kwargs or {})


@pytest.mark.parametrize("name", ["uniform_", "normal_", "constant_", "kaiming_uniform_"])
def test_what_is_like_a_tensor_is_asked_before_it_is_filled(name: str) -> None:
    more = (1.0,) if name == "constant_" else ()
    found = [getattr(t.nn.init, name)(Likeness(), *more) for t in (reference, rushlight)]
    assert found[1] == found[0]


@pytest.mark.parametrize("dtype", ["int32", "int16", "bfloat16", "uint8", None])
@pytest.mark.parametrize("part", [slice(None), slice(4, 10), slice(0, 3)])
def test_the_bytes_of_a_storage_as_numbers(dtype: str | None, part: slice) -> None:
    def numbers(t: Any) -> list[Any]:
        memory = t.arange(4.0).untyped_storage()
        given = {} if dtype is None else {"dtype": getattr(t, dtype)}
        found = t.asarray(memory[part], **given)
        return [str(found.dtype).split(".")[-1], found.tolist()]

    assert numbers(rushlight) == numbers(reference)


def test_numbers_and_storage_share_memory() -> None:
    memory = rushlight.arange(4.0).untyped_storage()
    rushlight.asarray(memory, dtype=rushlight.int32)[0] = 5
    assert memory[0] == 5


PHRASES: dict[str, Callable[[Any], Any]] = {
    "Expected out tensor to have dtype float, but got long int instead": lambda t: t.mm(t.eye(2), t.eye(2), out=t.empty(2, 2, dtype=t.int64)),
    "but got result with dtype Int": lambda t: t.linalg.pinv(t.eye(2), out=t.empty(2, 2, dtype=t.int32)),
    "result type Float can't be cast to the desired output type Long": lambda t: t.sin(t.ones(2), out=t.empty(2, dtype=t.int64)),
    "not implemented for 'Long'": lambda t: t.nn.functional.gelu(t.ones(2, dtype=t.int64)),
    "not implemented for 'ComplexFloat'": lambda t: t.atan2(t.ones(2, dtype=t.complex64), t.ones(2)),
    "not implemented for complex tensors": lambda t: t.maximum(t.ones(2, dtype=t.complex64), t.ones(2, dtype=t.complex64)),
    "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size": lambda t: t.nn.functional.pad(t.ones(1, 0, 3, 3), (1, 1, 1, 1), "reflect"),
    "Input and output sizes should be greater than 0, but got input": lambda t: t.nn.functional.interpolate(t.ones(1, 1, 0, 3), size=2),
    "Found an invalid max index:": lambda t: t.nn.functional.max_unpool1d(t.ones(1, 1, 2), t.full((1, 1, 2), 9), 2),
    "Padding size should be": lambda t: t.nn.functional.pad(t.ones(1, 1, 3), (5, 5), "reflect"),
    "torch.linspace(): inferred": lambda t: t.linspace(0, 1j, 3, dtype=t.float32),
    "You can pass `enforce_sorted=False`": lambda t: t.nn.utils.rnn.pack_padded_sequence(t.ones(3, 2, 1), t.tensor([1, 3])),
    "torch.load from a file that is seekable": lambda t: t.load(type("Own", (), {"read": lambda self: b""})()),
    "Tensor does not support deleting items": deletes,
}  # fmt: skip


@pytest.mark.parametrize("phrase", PHRASES)
def test_phrases_that_programs_look_for(phrase: str) -> None:
    for t in (reference, rushlight):
        with pytest.raises(Exception) as caught:
            PHRASES[phrase](t)
        assert phrase in str(caught.value)
