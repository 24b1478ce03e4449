"""Numbers of 8 bits: casts, what is computed of them, errors, files and checkpoints are PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rushlight
from rushlight.serialization import safetensors as files

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]
NAMES = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu")
SPECIAL = [
    0.0,
    -0.0,
    np.inf,
    -np.inf,
    np.nan,
    448,
    464,
    465,
    -1e9,
    57344,
    61440,
    240,
    248,
    3e38,
    2.0**-149,
    2.0**-127,
    1.5 * 2.0**-128,
    3,
    1.5,
    6,
]


def both(call: Callable[[Any], Any]) -> tuple[Any, Any]:
    return call(torch), call(rushlight)


def outcome(t: Any, call: Callable[[], Any]) -> Any:
    """Bits and dtype of a result, or the class of an error."""
    try:
        found = call()
    except (RuntimeError, TypeError) as error:
        return type(error).__name__
    if isinstance(found, t.Tensor):
        return (
            str(found.dtype),
            tuple(found.shape),
            found.contiguous().view(t.uint8).tolist() if found.ndim else found.item(),
        )
    return found


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("source", ["float32", "float64", "float16", "bfloat16"])
def test_casts_round_as_pytorchs(name: str, source: str) -> None:
    rng = np.random.default_rng(0)
    numbers = np.concatenate([rng.standard_normal(20000) * np.exp2(rng.integers(-140, 127, 20000)), SPECIAL]).astype(
        np.float32
    )
    if source == "bfloat16":  # the sign of a NaN follows from the processor
        numbers = numbers[~np.isnan(numbers)]
    theirs, ours = both(
        lambda t: t.from_numpy(numbers).to(getattr(t, source)).to(getattr(t, name)).view(t.uint8).tolist()
    )
    assert ours == theirs


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("target", ["float32", "float64", "float16", "bfloat16", "int32", "bool", "complex64"])
def test_all_numbers_of_a_dtype_are_pytorchs_in_others(name: str, target: str) -> None:
    def found(t: Any) -> Any:
        every = t.arange(256, dtype=t.uint8).view(getattr(t, name))
        if target == "int32":
            every = every[~every.float().isnan() & (every.float().abs() < 1e6)]
        return str(every.to(getattr(t, target)).tolist())

    theirs, ours = both(found)
    assert ours == theirs


def test_other_ways_to_such_numbers_round_alike() -> None:
    def found(t: Any, name: str) -> list[Any]:
        dtype = getattr(t, name)
        x, y, z = t.zeros(4).to(dtype), t.zeros(4).to(dtype), t.ones(4, requires_grad=True)
        x.copy_(t.tensor([1.3, 1e9, -500.0, 3.0]))
        y[1], y[2:] = 300.7, t.tensor([2.9, -1e5]).to(dtype)
        (z * 1.7).to(dtype).float().mul(t.tensor([1.0, 3.3, 1e5, -2.0])).sum().backward()
        made = [t.tensor([1.3, 1e9, 100], dtype=dtype), t.tensor(17, dtype=dtype), t.tensor([10**30, 2], dtype=dtype), t.full((2,), 3.3, dtype=dtype),
                t.zeros(2, dtype=dtype), t.ones(2, dtype=dtype), t.eye(2, dtype=dtype), x.clone().fill_(5.5), x.clone().zero_(), x, y]  # fmt: skip
        return [
            t.zeros(1, dtype=dtype).dtype.is_signed,
            *(m.view(t.uint8).tolist() for m in made),
            str(z.grad.tolist()),
        ]

    for name in NAMES:
        theirs, ours = both(lambda t, name=name: found(t, name))
        assert ours == theirs, name


MOVES = {
    "index": lambda t, x, y: x[1], "rows": lambda t, x, y: x[t.tensor([2, 0])], "mask": lambda t, x, y: x[t.tensor([True, False, True, False])],
    "cat": lambda t, x, y: t.cat([x, y]), "stack": lambda t, x, y: t.stack([x, y]), "where": lambda t, x, y: t.where(t.arange(4) > 1, x, y),
    "transposed": lambda t, x, y: x.view(2, 2).t().contiguous(), "roll": lambda t, x, y: x.roll(1), "repeat": lambda t, x, y: x.repeat(2),
    "select": lambda t, x, y: x.index_select(0, t.tensor([3, 3])), "embedding": lambda t, x, y: t.nn.functional.embedding(t.tensor([1, 0]), x.view(2, 2)),
    "unfold": lambda t, x, y: x.unfold(0, 2, 1), "diagonal": lambda t, x, y: x.view(2, 2).diagonal(), "number": lambda t, x, y: x[2].item(),
    "list": lambda t, x, y: x.tolist(), "text": lambda t, x, y: repr(x), "type": lambda t, x, y: x.type(), "any": lambda t, x, y: x.any(),
    "view": lambda t, x, y: x.view(t.int16), "bytes": lambda t, x, y: x.untyped_storage().nbytes(), "float": lambda t, x, y: float(x[1]),
    "product": lambda t, x, y: x * y, "equal": lambda t, x, y: x == y, "unequal": lambda t, x, y: x != y, "equal to": lambda t, x, y: x == 1.0,
    "nan": lambda t, x, y: x.isnan(), "abs": lambda t, x, y: x.abs(), "isinf": lambda t, x, y: x.isinf(), "isfinite": lambda t, x, y: x.isfinite(),
    "mm": lambda t, x, y: x.view(2, 2) @ y.view(2, 2), "wide sum": lambda t, x, y: x.sum(dtype=t.float32), "beside a number": lambda t, x, y: t.ones(()) * x,
    "promoted": lambda t, x, y: str(t.result_type(x, 1.0)), "floating": lambda t, x, y: (x.is_floating_point(), x.element_size(), x.dtype.itemsize),
    "cast": lambda t, x, y: (t.can_cast(x.dtype, t.int32), t.can_cast(t.float32, x.dtype)), "put": lambda t, x, y: x.index_put((t.tensor([0]),), y[:1], accumulate=True),
}  # fmt: skip
REFUSED = {
    "add": lambda t, x, y: x + y, "add a number": lambda t, x, y: x + 1, "divide": lambda t, x, y: x / y, "negative": lambda t, x, y: -x, "less": lambda t, x, y: x < y,
    "sum": lambda t, x, y: x.sum(), "mean": lambda t, x, y: x.mean(), "max": lambda t, x, y: x.max(), "argmax": lambda t, x, y: x.argmax(), "sort": lambda t, x, y: x.sort(),
    "exp": lambda t, x, y: x.exp(), "relu": lambda t, x, y: x.relu(), "clamp": lambda t, x, y: x.clamp(0, 1), "round": lambda t, x, y: x.round(), "sign": lambda t, x, y: x.sign(),
    "softmax": lambda t, x, y: x.softmax(0), "norm": lambda t, x, y: x.norm(), "cumsum": lambda t, x, y: x.cumsum(0), "rand": lambda t, x, y: t.rand(2, dtype=x.dtype),
    "randn": lambda t, x, y: t.randn(2, dtype=x.dtype), "normal_": lambda t, x, y: x.normal_(), "in place": lambda t, x, y: x.add_(1), "power": lambda t, x, y: x**2,
    "dot": lambda t, x, y: x @ y, "dropout": lambda t, x, y: t.nn.functional.dropout(x, 0.5), "index_add": lambda t, x, y: x.index_add(0, t.tensor([0]), y[:1]),
    "beside float32": lambda t, x, y: x + t.ones(4), "into float32": lambda t, x, y: t.ones(4).mul_(x), "cat with float32": lambda t, x, y: t.cat([x, t.ones(1)]),
    "equal to float32": lambda t, x, y: x == t.ones(4), "beside integers": lambda t, x, y: x * t.ones(4, dtype=t.int64), "mm with float32": lambda t, x, y: x.view(2, 2) @ t.ones(2, 2),
    "layer": lambda t, x, y: t.nn.functional.linear(t.ones(1, 2), x.view(2, 2)), "default": lambda t, x, y: t.set_default_dtype(x.dtype), "numpy": lambda t, x, y: x.numpy(),
    "promotion": lambda t, x, y: t.promote_types(x.dtype, t.float32), "isclose": lambda t, x, y: t.isclose(x, y), "maximum": lambda t, x, y: t.maximum(x, y),
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("what", [*MOVES, *REFUSED])
def test_what_is_done_with_such_numbers_and_what_is_refused(name: str, what: str) -> None:
    def found(t: Any) -> Any:
        x, y = (t.tensor(v).to(getattr(t, name)) for v in ([0.5, 1.0, 2.0, 4.0], [1.0, 2.0, 0.5, 8.0]))
        return outcome(t, lambda: {**MOVES, **REFUSED}[what](t, x, y))

    theirs, ours = both(found)
    assert ours == theirs
    assert what in MOVES or isinstance(ours, str)


@pytest.mark.parametrize("name", NAMES[:4])
def test_products_are_rounded_once(name: str) -> None:
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((9, 33)).astype(np.float32), rng.standard_normal((33, 7)).astype(np.float32)

    def found(t: Any) -> Any:
        x, y = (t.from_numpy(v).to(getattr(t, name)) for v in (a, b))
        return [
            (x @ y).float().tolist(),
            (x * x).view(t.uint8).tolist(),
            t.nn.functional.linear(x, y.t()).float().tolist(),
        ]

    theirs, ours = both(found)
    assert ours == theirs


def test_limits_are_pytorchs() -> None:
    for name in NAMES:
        if name != "float8_e5m2fnuz":  # whose eps is that of three digits in PyTorch: it has two
            assert str(rushlight.finfo(getattr(rushlight, name))) == str(torch.finfo(getattr(torch, name)))


def numbers(t: Any) -> dict[str, Any]:
    return {name: t.tensor([[0.5, 1.0, 2.0], [4.0, 8.0, 16.0]]).to(getattr(t, name)) for name in NAMES}


def bits(t: Any, found: dict[str, Any]) -> dict[str, Any]:
    return {k: (v.view(t.uint8).tolist(), str(v.dtype)) for k, v in found.items()}


@pytest.mark.parametrize("weights_only", [True, False])
def test_files_go_both_ways(tmp_path: Path, weights_only: bool) -> None:
    path = str(tmp_path / "x.pt")
    for writer in (torch, rushlight):
        writer.save({**numbers(writer), "p": writer.nn.Parameter(numbers(writer)[NAMES[0]])}, path)
        for reader in (torch, rushlight):
            found = reader.load(path, weights_only=weights_only)
            assert found.pop("p").requires_grad
            assert bits(reader, found) == bits(torch, numbers(torch))


def test_safetensors_go_both_ways(tmp_path: Path) -> None:
    library = pytest.importorskip("safetensors.torch")
    more = {
        "f": torch.ones(2),
        "b": torch.ones(2).bfloat16(),
        "h": torch.ones(2).half(),
        "t": torch.tensor([True, False]),
        "u": torch.ones(2, dtype=torch.uint16),
    }
    library.save_file({**numbers(torch), **more}, tmp_path / "a")
    found = files.load_file(tmp_path / "a")
    assert bits(rushlight, {k: found[k] for k in NAMES}) == bits(torch, numbers(torch))
    assert {k: (found[k].tolist(), str(found[k].dtype)) for k in more} == {
        k: (v.tolist(), str(v.dtype)) for k, v in more.items()
    }
    files.save_file(numbers(rushlight), tmp_path / "b")
    assert bits(torch, library.load_file(tmp_path / "b")) == bits(torch, numbers(torch))


def test_checkpoints_load_into_wider_parameters_and_back() -> None:
    def found(t: Any, name: str) -> Any:
        net = t.nn.Linear(3, 2, bias=False)
        net.load_state_dict({"weight": numbers(t)[name]})
        wide = net.weight.tolist(), str(net.weight.dtype)
        net.to(getattr(t, name))
        return wide, str(net.weight.dtype), net.state_dict()["weight"].view(t.uint8).tolist()

    for name in NAMES:
        theirs, ours = both(lambda t, name=name: found(t, name))
        assert ours == theirs


def test_no_gradient_is_added_and_no_optimizer_steps() -> None:
    for t in (torch, rushlight):
        p = t.nn.Parameter(t.ones(3).to(t.float8_e4m3fn))
        p.float().sum().backward()
        assert p.grad.dtype is t.float8_e4m3fn
        with pytest.raises(NotImplementedError, match="Float8_e4m3fn"):
            p.float().sum().backward()
        with pytest.raises(NotImplementedError, match="Float8_e4m3fn"):
            (p.float() + p.bfloat16()).sum().backward()
        for optimizer in (
            t.optim.SGD([p], 0.1),
            t.optim.Adam([p], 0.1),
            t.optim.RMSprop([p], 0.1),
            t.optim.Adagrad([p], 0.1) if t is torch else t.optim.Adadelta([p]),
        ):
            with pytest.raises((NotImplementedError, RuntimeError)):
                optimizer.step()
