"""Autocast on the CPU: the dtypes of results, and training, as in PyTorch."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rushlight

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]


def made(lib: Any, dtype: Any, *shape: int) -> Any:
    return (lib.arange(float(np.prod(shape, dtype=int))).reshape(shape).cos() * 0.3 + 0.5).to(dtype)


# Each takes the library and a function that makes operands of given shapes.
CASES: dict[str, Callable[[Any, Any], Any]] = {
    "mm": lambda t, f: f(3, 3) @ f(3, 3), "bmm": lambda t, f: t.bmm(f(2, 3, 3), f(2, 3, 3)), "mv": lambda t, f: t.mv(f(3, 3), f(3)),
    "dot": lambda t, f: t.dot(f(3), f(3)), "addmm": lambda t, f: t.addmm(f(3, 3), f(3, 3), f(3, 3)),
    "baddbmm": lambda t, f: t.baddbmm(f(2, 3, 3), f(2, 3, 3), f(2, 3, 3)), "addbmm": lambda t, f: t.addbmm(f(3, 3), f(2, 3, 3), f(2, 3, 3)),
    "multi_dot": lambda t, f: t.linalg.multi_dot([f(3, 3)] * 3), "einsum": lambda t, f: t.einsum("ij,jk->ik", f(3, 3), f(3, 3)),
    "linear": lambda t, f: t.nn.functional.linear(f(2, 3), f(4, 3), f(4)), "bilinear": lambda t, f: t.nn.functional.bilinear(f(2, 3), f(2, 3), f(4, 3, 3)),
    "conv1d": lambda t, f: t.nn.functional.conv1d(f(1, 2, 5), f(3, 2, 3)), "conv2d": lambda t, f: t.nn.functional.conv2d(f(1, 2, 5, 5), f(3, 2, 3, 3), f(3)),
    "conv_transpose2d": lambda t, f: t.nn.functional.conv_transpose2d(f(1, 2, 5, 5), f(2, 3, 3, 3)),
    "attention": lambda t, f: t.nn.functional.scaled_dot_product_attention(f(1, 1, 3, 4), f(1, 1, 3, 4), f(1, 1, 3, 4)),
    "softmax": lambda t, f: f(3, 3).softmax(-1), "layer_norm": lambda t, f: t.nn.functional.layer_norm(f(3, 3), (3,)),
    "batch_norm": lambda t, f: t.nn.functional.batch_norm(f(3, 3), None, None, training=True), "gelu": lambda t, f: t.nn.functional.gelu(f(3)),
    "sum": lambda t, f: f(3).sum(), "prod": lambda t, f: f(3).prod(), "cumsum": lambda t, f: f(3).cumsum(0), "exp": lambda t, f: f(3).exp(),
    "mse": lambda t, f: t.nn.functional.mse_loss(f(3), f(3)), "l1": lambda t, f: t.nn.functional.l1_loss(f(3), f(3)),
    "smooth_l1": lambda t, f: t.nn.functional.smooth_l1_loss(f(3), f(3)), "huber": lambda t, f: t.nn.functional.huber_loss(f(3), f(3)),
    "bce": lambda t, f: t.nn.functional.binary_cross_entropy(f(3), f(3)), "bcel": lambda t, f: t.nn.functional.binary_cross_entropy_with_logits(f(3), f(3)),
    "cross_entropy": lambda t, f: t.nn.functional.cross_entropy(f(3, 4), t.tensor([0, 1, 2])),
    "nll": lambda t, f: t.nn.functional.nll_loss(f(3, 4), t.tensor([0, 1, 2])), "kl": lambda t, f: t.nn.functional.kl_div(f(3), f(3)),
    "hinge": lambda t, f: t.nn.functional.hinge_embedding_loss(f(3), f(3)), "poisson": lambda t, f: t.nn.functional.poisson_nll_loss(f(3), f(3)),
    "margin": lambda t, f: t.nn.functional.margin_ranking_loss(f(3), f(3), f(3)), "triplet": lambda t, f: t.nn.functional.triplet_margin_loss(f(3, 4), f(3, 4), f(3, 4)),
    "multi_margin": lambda t, f: t.nn.functional.multi_margin_loss(f(3, 4), t.tensor([0, 1, 2])),
    "ctc": lambda t, f: t.nn.functional.ctc_loss(f(5, 1, 4).log_softmax(-1), t.tensor([[1, 2]]), t.tensor([5]), t.tensor([2])),
    "cdist": lambda t, f: t.cdist(f(3, 4), f(3, 4)), "trace": lambda t, f: f(3, 3).trace(), "quantile": lambda t, f: t.quantile(f(3), 0.5),
    "inverse": lambda t, f: t.inverse(f(2, 2) + t.eye(2)), "svd": lambda t, f: t.linalg.svd(f(3, 3))[1], "qr": lambda t, f: t.linalg.qr(f(3, 3))[0],
    "solve": lambda t, f: t.linalg.solve(t.eye(3, dtype=f(1).dtype), f(3)), "fft": lambda t, f: t.fft.fft(f(4)).real, "rfft": lambda t, f: t.fft.rfft(f(4)).real,
    "grid_sample": lambda t, f: t.nn.functional.grid_sample(f(1, 1, 3, 3), f(1, 3, 3, 2)), "max_pool2d": lambda t, f: t.nn.functional.max_pool2d(f(1, 1, 4, 4), 2),
    "cat": lambda t, f: t.cat((f(3), f(3))), "add": lambda t, f: f(3) + f(3), "embedding": lambda t, f: t.nn.functional.embedding(t.tensor([0, 1]), f(3, 4)),
    "LSTM": lambda t, f: t.nn.LSTM(3, 4)(f(5, 2, 3))[0], "RNN": lambda t, f: t.nn.RNN(3, 4)(f(5, 2, 3))[0],
    "MultiheadAttention": lambda t, f: t.nn.MultiheadAttention(4, 2)(*[f(5, 2, 4)] * 3)[0], "matrix_power": lambda t, f: t.linalg.matrix_power(f(3, 3), 2),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
def test_dtypes_of_results(name: str, dtype: str) -> None:
    if dtype == "float64" and name in ("LSTM", "RNN", "MultiheadAttention"):
        return  # their parameters are float32: converted beside operands that are not
    found = []
    for lib in (rushlight, torch):
        with lib.autocast("cpu", dtype=lib.bfloat16):
            try:
                found.append(
                    str(CASES[name](lib, lambda *shape, lib=lib: made(lib, getattr(lib, dtype), *shape)).dtype)
                )
            except (RuntimeError, ValueError) as error:
                if lib is torch and "primitive" in str(error):
                    return  # PyTorch's library has no such layer for this processor
                found.append("an error")
    assert found[0] == found[1]


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
