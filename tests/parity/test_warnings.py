"""What PyTorch warns of is warned of: the same category, and the gist of the words."""

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import rushlight

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity


def signal(t: Any) -> Any:
    return t.stft(t.ones(64), 16, window=t.ones(16), return_complex=True)


def encoder(t: Any, heads: int = 2, **options: Any) -> Any:
    return t.nn.TransformerEncoder(t.nn.TransformerEncoderLayer(heads * 4, heads, **options), 1)


def masked(t: Any) -> Any:
    x = t.ones(2, 1, 8)
    mask = t.zeros(1, 2, dtype=t.bool)
    return t.nn.MultiheadAttention(8, 2)(x, x, x, key_padding_mask=mask, attn_mask=t.zeros(2, 2))


def default_type(t: Any) -> None:
    t.set_default_tensor_type(t.FloatTensor)


CALLS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "affine_grid of size 1": (lambda t: t.nn.functional.affine_grid(t.zeros(1, 2, 3), (1, 1, 1, 2), True), "unit-size grids"),
    "affine_grid": (lambda t: t.nn.functional.affine_grid(t.zeros(1, 2, 3), (1, 1, 2, 2)), "align_corners=False since 1.3.0"),
    "grid_sample": (lambda t: t.nn.functional.grid_sample(t.ones(1, 1, 2, 2), t.zeros(1, 2, 2, 2)), "align_corners=False since 1.3.0"),
    "range": (lambda t: t.range(0, 3), "torch.range is deprecated"),
    "stft": (lambda t: t.stft(t.ones(64), 16, return_complex=True), "A window was not provided"),
    "istft": (lambda t: t.istft(signal(t), 16), "A window was not provided"),
    "istft, longer": (lambda t: t.istft(signal(t), 16, window=t.ones(16), length=99), "padded with zeros in the tail"),
    "random_, float16": (lambda t: t.empty(3, dtype=t.float16).random_(0, 2**12), "to - 1 is out of bounds"),
    "random_, from": (lambda t: t.empty(3, dtype=t.float16).random_(-(2**12), 2**11), "from is out of bounds"),
    "random_, bfloat16": (lambda t: t.empty(3, dtype=t.bfloat16).random_(2**12), "to - 1 is out of bounds"),
    "random_, float64": (lambda t: t.empty(3, dtype=t.float64).random_(2**53 + 2), "to - 1 is out of bounds"),
    "dropout2d": (lambda t: t.nn.functional.dropout2d(t.ones(2, 3, 4)), "Received a 3D input to dropout2d"),
    "Dropout2d": (lambda t: t.nn.Dropout2d()(t.ones(2, 3, 4)), "Received a 3D input to dropout2d"),
    "default type": (default_type, "set_default_tensor_type.. is deprecated"),
    "encoder": (encoder, "batch_first was not True"),
    "encoder, odd": (lambda t: encoder(t, 3, batch_first=True), "num_heads is odd"),
    "encoder, norm first": (lambda t: encoder(t, batch_first=True, norm_first=True), "norm_first was True"),
    "encoder, no bias": (lambda t: encoder(t, batch_first=True, bias=False), "was passed bias=False"),
    "encoder, other activation": (lambda t: encoder(t, batch_first=True, activation=t.tanh), "activation_relu_or_gelu"),
    "encoder, as is": (lambda t: encoder(t, batch_first=True, activation="gelu"), ""),
    "complex module": (lambda t: t.nn.Linear(2, 2).to(t.complex64), "Complex modules are a new feature"),
    "cross": (lambda t: t.cross(t.ones(3, 3), t.ones(3, 3)), "without specifying the dim arg"),
    "cross, a dim": (lambda t: t.cross(t.ones(3, 3), t.ones(3, 3), dim=0), ""),
    "where": (lambda t: t.where(t.ones(2, dtype=t.uint8), t.ones(2), t.ones(2)), "uint8 condition"),
    "cholesky": (lambda t: t.cholesky(t.eye(2)), "deprecated in favor of torch.linalg.cholesky"),
    "qr": (lambda t: t.qr(t.eye(2)), "deprecated in favor of torch.linalg.qr"),
    "lu": (lambda t: t.lu(t.eye(2)), "deprecated in favor of torch.linalg.lu_factor"),
    "masks": (masked, "mismatched key_padding_mask and attn_mask"),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_the_same_warning(name: str) -> None:
    call, words = CALLS[name]
    for t in (torch, rushlight):
        t.set_warn_always(True)  # else some come once in a process
        try:
            with warnings.catch_warnings(record=True) as found:
                warnings.simplefilter("always")
                call(t)
        finally:
            t.set_warn_always(False)
        assert [w.category for w in found] == [UserWarning] * bool(words)
        if words:
            with pytest.warns(UserWarning, match=words):
                warnings.warn_explicit(found[0].message, UserWarning, "here", 1)


def test_some_warnings_come_once() -> None:
    said = []
    for _ in range(2):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            rushlight.cross(rushlight.ones(3, 3), rushlight.ones(3, 3))
        said.append(len(found))
    assert said[1] == 0
