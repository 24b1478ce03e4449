"""Autocast on the CPU: the dtypes of results, and training, as in PyTorch."""

from typing import Any

import numpy as np
import pytest
from tools.calls import CALLS
from tools.replaying.cases import SPACE as OURS
from tools.replaying.cases import flat, variables

import rushlight

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]


SPACE = {"T": torch, "F": torch.nn.functional, "L": torch.linalg, "S": torch.special, "X": torch.fft}
MORE = (
    "L.svd(q)",
    "T.inverse(q)",
    "T.nn.LSTM(4, 3)(x)[0]",
    "T.nn.RNN(4, 3)(x)[0]",
    "T.nn.MultiheadAttention(4, 2)(x, x, x)[0]",
)
LAYERS = tuple(call for call in MORE if call.startswith("T.nn."))
# By call, whose results have another dtype: see docs/differences.md.
DIFFERENT = {
    "a @ v": "products with vectors stay in float32",
    "T.addmv(v[:3], a, v)": "is a product of matrices here",
    "L.pinv(q)": "is one operator here, in float32",
    "F.pad(x, (1, 2), mode='reflect')": "moves numbers: 16 bits lose nothing",
    "F.max_unpool2d(*F.max_pool2d(h, 2, return_indices=True), 2)": "as above",
    "F.fractional_max_pool2d(h, 2, 3, _random_samples=h[:, :, 0, :2])": "as above",
    "F.affine_grid(x[:, :2, :3], [2, 1, 4, 5], align_corners=False)": "coordinates stay in float32",
    "F.local_response_norm(h, 2)": "is one operator here, of 16 bits what its input has",
}


def results(lib: Any, space: dict[str, Any], call: str, dtype: str) -> list[str] | str:
    """The dtypes of a call's results under autocast, or the error."""
    tensors = {name: lib.from_numpy(np.array(array)) for name, array in variables(call).items()}
    kind = getattr(lib, dtype)
    given = {name: t.to(kind) if t.is_floating_point() else t for name, t in tensors.items()}
    with lib.autocast("cpu", dtype=lib.bfloat16):
        try:
            return [str(getattr(t, "dtype", t)) for t in flat(eval(call, {**space, **given}))]
        except (RuntimeError, ValueError) as error:
            return str(error)


@pytest.mark.parametrize("call", [*CALLS, *MORE])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
def test_dtypes_of_results(call: str, dtype: str) -> None:
    if dtype == "float64" and call in LAYERS:
        return  # their parameters are float32: converted beside operands that are not
    theirs = results(torch, SPACE, call, dtype)
    if not isinstance(theirs, str) and call not in DIFFERENT:  # what PyTorch has no kernel for is compared elsewhere
        assert results(rushlight, OURS, call, dtype) == theirs


@pytest.mark.parametrize("call", DIFFERENT)
def test_calls_that_are_said_to_differ_do(call: str) -> None:
    assert any(
        results(rushlight, OURS, call, dtype) != results(torch, SPACE, call, dtype) for dtype in ("float32", "bfloat16")
    )


def test_what_is_not_computed_in_16_bits_has_no_product_in_them_inside() -> None:
    """`lstsq` and `matrix_exp` multiply matrices: they did so in 16 bits, of which two or three digits are left."""
    a = rushlight.randn(6, 4, generator=rushlight.Generator().manual_seed(0))
    square, b = a[:4] / 3, a[:, :2]
    for call in (lambda: rushlight.linalg.lstsq(a, b).solution, lambda: rushlight.linalg.matrix_exp(square)):
        expected = call()
        with rushlight.autocast("cpu", dtype=rushlight.bfloat16):
            rushlight.testing.assert_close(call(), expected)


def net(lib: Any) -> Any:
    """A net of many kinds of layers, weights from a generator of their own."""
    nn = lib.nn

    class Net(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.norm = nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8)
            self.wide, self.layer_norm = nn.Linear(128, 32), nn.LayerNorm(32)
            self.attention, self.lstm, self.out = (
                nn.MultiheadAttention(32, 4, batch_first=True),
                nn.LSTM(32, 16),
                nn.Linear(16, 5),
            )

        def forward(self, x: Any) -> Any:
            x = nn.functional.max_pool2d(nn.functional.relu(self.norm(self.conv(x))), 2).flatten(1)
            x = nn.functional.gelu(self.layer_norm(self.wide(x)))[None]
            x = x + self.attention(x, x, x)[0]
            return self.out(self.lstm(x)[0][0])

    made, rng = Net(), np.random.default_rng(0)
    with lib.no_grad():
        for p in made.parameters():
            p.copy_(lib.from_numpy((rng.standard_normal(tuple(p.shape)) * 0.2).astype("f4")))
    return made


def losses(lib: Any, checkpoint: Any) -> list[float]:
    model, rng, found = net(lib), np.random.default_rng(1), []
    x, y = lib.from_numpy(rng.standard_normal((16, 1, 8, 8)).astype("f4")), lib.from_numpy(rng.integers(0, 5, 16))
    optimizer, scaler = (
        lib.optim.SGD(model.parameters(), lr=0.1),
        lib.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=3),
    )
    for step in range(8):
        optimizer.zero_grad()
        with lib.autocast("cpu", dtype=lib.bfloat16):
            out = checkpoint(model, x, use_reentrant=False) if step % 2 else model(x)
            loss = lib.nn.functional.cross_entropy(out, y)
        assert out.dtype is lib.bfloat16 and loss.dtype is lib.float32
        scaler.scale(loss).backward()
        if step % 3:
            scaler.unscale_(optimizer)
            lib.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if step == 5:
            next(model.parameters()).grad.fill_(float("inf"))
        scaler.step(optimizer)
        scaler.update()
        found += [loss.item(), scaler.get_scale()]
    assert all(p.grad.dtype is lib.float32 for p in model.parameters())
    return found


def test_training_under_autocast_with_checkpoints_and_a_scaler() -> None:
    from torch.utils.checkpoint import checkpoint

    ours, theirs = losses(rushlight, rushlight.utils.checkpoint.checkpoint), losses(torch, checkpoint)
    assert ours[1::2] == theirs[1::2]
    np.testing.assert_allclose(ours[::2], theirs[::2], rtol=3e-3)


def scaler_story(lib: Any) -> list[Any]:
    """What a scaler says of misuse, and what it keeps."""
    p = lib.nn.Parameter(lib.ones(2))
    optimizer, scaler, said = lib.optim.SGD([p], lr=0.5), lib.amp.GradScaler("cpu", init_scale=8.0), []
    for act in (
        scaler.update, lambda: scaler.scale(p.sum()).backward(), lambda: scaler.unscale_(optimizer), lambda: scaler.unscale_(optimizer),
        lambda: scaler.step(optimizer), lambda: scaler.step(optimizer), scaler.update, lambda: scaler.update(4.0),
        lambda: scaler.step(optimizer, closure=lambda: 0),
    ):  # fmt: skip
        try:
            act()
            said.append(None)
        except Exception as error:
            said.append(type(error).__name__)
    kept = scaler.state_dict()
    again = lib.amp.GradScaler("cpu")
    again.load_state_dict(kept)
    scaled = [x.tolist() for x in scaler.scale([p, p.sum()])]
    return [
        *said,
        kept,
        again.state_dict(),
        p.tolist(),
        scaled,
        scaler.is_enabled(),
        lib.amp.GradScaler("cpu", enabled=False).state_dict(),
    ]


def test_the_scaler_says_what_pytorchs_says() -> None:
    def one_error(found: list[Any]) -> list[Any]:
        return ["an error" if isinstance(x, str) and x.endswith("Error") else x for x in found]

    assert one_error(scaler_story(rushlight)) == one_error(scaler_story(torch))


def test_a_step_without_gradients_is_refused() -> None:
    for lib in (rushlight, torch):
        p = lib.nn.Parameter(lib.ones(2))
        optimizer, scaler = lib.optim.SGD([p], lr=0.5), lib.amp.GradScaler("cpu")
        scaler.scale(lib.ones(1))
        with pytest.raises(AssertionError):
            scaler.step(optimizer)
        with pytest.raises((RuntimeError, AssertionError)):
            scaler.update()


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpoints_compute_again_as_they_did_though_backward_is_outside(reentrant: bool) -> None:
    def gradients(lib: Any) -> tuple[list[str], list[Any]]:
        layer, seen = lib.nn.Linear(3, 3), []
        with lib.no_grad():
            layer.weight.copy_(lib.arange(9.0).reshape(3, 3) / 9)
            layer.bias.fill_(0.5)

        def run(z: Any) -> Any:
            seen.append(layer(z).dtype)
            return layer(z)

        x = lib.ones(2, 3, requires_grad=True)
        with lib.autocast("cpu", dtype=lib.bfloat16):
            y = lib.utils.checkpoint.checkpoint(run, layer(x), use_reentrant=reentrant)
        again = lib.utils.checkpoint.checkpoint(run, x, use_reentrant=reentrant)
        with lib.autocast("cpu", dtype=lib.bfloat16):
            (y.float().sum() + again.sum()).backward()
        return [str(t).split(".")[-1] for t in seen], [layer.weight.grad.tolist(), x.grad.tolist()]

    (ours, found), (theirs, wanted) = gradients(rushlight), gradients(torch)
    assert ours == theirs
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-2)


def test_nesting_and_states() -> None:
    def story(lib: Any) -> list[Any]:
        a, found = lib.ones(2, 2), []

        @lib.autocast("cpu", dtype=lib.float16)
        def decorated() -> Any:
            return a @ a

        with lib.autocast("cpu"):
            found += [(a @ a).dtype, lib.is_autocast_enabled("cpu"), lib.get_autocast_dtype("cpu")]
            with lib.autocast("cpu", enabled=False):
                found += [(a @ a).dtype, lib.is_autocast_enabled("cpu")]
            found += [(a @ a).dtype, (a @ (a @ a)).dtype, decorated().dtype]
        return [str(x) for x in [*found, lib.is_autocast_enabled("cpu"), decorated().dtype, (a @ a).dtype]]

    assert story(rushlight) == story(torch)


def test_copies_of_parameters_are_made_once_and_freed() -> None:
    p = rushlight.nn.Parameter(rushlight.ones(300, 300))
    with rushlight.autocast("cpu"):
        with rushlight.no_grad():
            p @ p
        y = (p @ p).sum() + (p @ p).sum()
        from rushlight.basics.state import modes

        copies = modes.autocast.copies
        assert len(copies) == 1
    assert not copies
    y.backward()
    assert p.grad is not None and p.grad.dtype is rushlight.float32 and (p.grad == 1200).all()
