"""What programs look for in refusals of layers, and files of spectral norms from before their second vector was kept."""

from __future__ import annotations

import copy
import importlib
import re
from collections.abc import Callable
from typing import Any

import pytest
from tests.parity.refusing import refuse_alike

import rushlight

reference = pytest.importorskip("torch")
pytestmark = pytest.mark.parity

Case = tuple[str, Callable[[Any], Any]]


def heads(t: Any, q: int = 3, **kwargs: Any) -> Any:
    x = t.ones(3, 2, 4)
    given = {"query": x if q == 3 else x[0], "key": x, "value": x, **kwargs}
    return t.nn.MultiheadAttention(4, 2)(**given)


def pool(t: Any, n: int, *args: Any) -> Any:
    return getattr(t.nn.functional, f"max_pool{n}d")(t.ones(1, 2, *[4] * n), *args)


def bag(t: Any, **kwargs: Any) -> Any:
    return t.nn.functional.embedding_bag(t.tensor([1, 2]), t.ones(3, 2), t.tensor([0]), **kwargs)


def attended(t: Any, **kwargs: Any) -> Any:
    x = t.ones(1, 2, 3, 4)
    return t.nn.functional.scaled_dot_product_attention(x, x, x, **kwargs)


CASES: dict[str, Case] = {
    "kernel of unfold": ("kernel size should be greater than zero", lambda t: t.nn.Unfold(0)(t.ones(1, 2, 4, 4))),
    "stride of unfold": ("stride should be greater than zero", lambda t: t.nn.Unfold(2, stride=0)(t.ones(1, 2, 4, 4))),
    "dilation of fold": ("dilation should be greater than zero", lambda t: t.nn.Fold(4, 2, 0)(t.ones(1, 4, 8))),
    "small image": ("Given input with spatial size", lambda t: t.nn.Unfold(2)(t.ones(1, 2, 1, 1))),
    "padding_idx": ("Padding_idx must be within num_embeddings", lambda t: t.nn.Embedding(5, 3, padding_idx=9)),
    "weight of a table": (
        "Shape of weight does not match num_embeddings and embedding_dim",
        lambda t: t.nn.Embedding(4, 2, _weight=t.ones(3, 2)),
    ),
    "frequencies of maxima": (
        "max mode does not support scaling the gradient by the frequency",
        lambda t: bag(t, mode="max", scale_grad_by_freq=True),
    ),
    "dtype of weights of samples": (
        "to have the same type as",
        lambda t: bag(t, mode="sum", per_sample_weights=t.ones(2).double()),
    ),
    "hook of loading": (
        "Hooks registered with ``register_load_state_dict_post_hook`` are not",
        lambda t: answering(t, 3),
    ),
    "dimensions of keys": (
        r"For unbatched \(2-D\) `query`, expected `key` and `value` to be 2-D but found 3-D and 3-D",
        lambda t: heads(t, 2),
    ),
    "dimensions of padding": (
        r"For batched \(3-D\) `query`, expected `key_padding_mask` to be `None` or 2-D but found 1-D",
        lambda t: heads(t, key_padding_mask=t.ones(3).bool()),
    ),
    "dimensions of a mask": (
        r"expected `attn_mask` to be `None`, 2-D or 3-D but found 1-D",
        lambda t: heads(t, attn_mask=t.ones(3).bool()),
    ),
    "shape of a mask": (
        r"The shape of the 2D attn_mask is torch.Size\(\[2, 2\]\), but should be \(3, 3\)",
        lambda t: heads(t, attn_mask=t.ones(2, 2).bool()),
    ),
    "kernel sizes of one": (r"max_pool1d\(\) kernel_size must be an int, list of ints or", lambda t: pool(t, 1, (1, 1))),
    "padding of one": ("padding must be non-negative, but got -1", lambda t: pool(t, 1, 1, 1, -1)),
    "much padding": (
        "padding should be at most half of kernel size, but got padding=1 and kernel_size=1",
        lambda t: pool(t, 1, 1, 1, 1),
    ),
    "kernel sizes of two": ("kernel_size must either be a single int, or a tuple of two ints", lambda t: pool(t, 2, (1, 2, 3))),
    "strides of three": ("stride must either be omitted, a single int, or a tuple of three", lambda t: pool(t, 3, 1, (1, 2))),
    "dilations of two": ("dilation must be either a single int, or a tuple of two ints", lambda t: pool(t, 2, 1, 1, 0, (1, 2, 3))),
    "sizes of unpooling": (
        "output_size should be a sequence containing 2 or 4 elements",
        lambda t: t.nn.MaxUnpool2d(2)(t.ones(1, 1, 2, 2), t.zeros(1, 1, 2, 2).long(), [4] * 5),
    ),
    "average of no channels": (
        "to have non-zero size for non-batch dimensions",
        lambda t: t.nn.functional.adaptive_avg_pool3d(t.ones(1, 0, 4, 4, 4), 2),
    ),
    "samples of another dtype": (
        "Expect _random_samples to have the same dtype as input",
        lambda t: t.nn.functional.fractional_max_pool2d(t.ones(1, 1, 4, 4), 2, 2, _random_samples=t.ones(1, 1, 2).double()),
    ),
    "transposed convolution of nothing": (
        "Only zero batch or zero channel inputs are supported",
        lambda t: t.nn.ConvTranspose1d(2, 2, 3)(t.ones(1, 2, 0)),
    ),
    "orthogonal": ("has no parameter or buffer with name", lambda t: t.nn.utils.parametrizations.orthogonal(t.nn.ReLU(), "x")),
    "empty sequences": ("Cannot pack empty tensors", lambda t: t.nn.utils.rnn.pack_padded_sequence(t.ones(0, 2), [0, 0])),
    "values of reflected pads": (
        "doesn't take in value argument",
        lambda t: t.nn.functional.pad(t.ones(1, 1, 4, 4), (1, 1), "reflect", value=1),
    ),
    "a causal bias that is causal": (
        "CausalBias should not be used with causal=True",
        lambda t: attended(t, attn_mask=importlib.import_module(f"{t.__name__}.nn.attention.bias").causal_upper_left(3, 3), is_causal=True),
    ),
    "improbable": ("dropout probability has to be between 0 and 1", lambda t: attended(t, dropout_p=2.0)),
    "a mask of integers": (
        "only bool and floating types of mask are supported",
        lambda t: t.nn.TransformerEncoder(t.nn.TransformerEncoderLayer(4, 2, 8), 1, enable_nested_tensor=False)(
            t.ones(3, 2, 4), mask=t.ones(3, 3).long()
        ),
    ),
    "lengths of two dimensions": (
        "'lengths' argument should be a 1D CPU int64 tensor",
        lambda t: t.nn.utils.rnn.pack_padded_sequence(t.ones(3, 2), t.tensor([[3, 1]])),
    ),
}  # fmt: skip


def answering(t: Any, answer: object) -> Any:
    layer = t.nn.Linear(2, 2)
    layer.register_load_state_dict_post_hook(lambda module, keys: answer)
    return layer.load_state_dict(layer.state_dict())


@pytest.mark.parametrize("name", CASES)
def test_refusals_of_layers_are_of_pytorchs_kind_and_have_its_words(name: str) -> None:
    words, call = CASES[name]
    refuse_alike(reference, words, call)


def test_the_order_of_long_ago_is_told_in_the_words_that_programs_filter() -> None:
    words = re.escape("Argument order of nn.functional.embedding_bag was changed")
    for t in (reference, rushlight):
        with pytest.warns(UserWarning, match=words):
            t.nn.functional.embedding_bag(t.ones(3, 2), t.tensor([1]), t.tensor([0]))


def old_file(t: Any, drop: tuple[str, ...]) -> tuple[Any, Any]:
    """A layer with a spectral norm, and its state_dict as the first version wrote it, without the names in `drop`."""
    layer = t.nn.utils.spectral_norm(t.nn.Linear(3, 2))
    layer(t.ones(1, 3))
    state = copy.deepcopy(layer.state_dict())
    assert state._metadata[""].pop("spectral_norm") == {"weight.version": 1}
    state["weight"] = layer.eval().weight.detach().clone()
    for name in ("weight_v", *drop):
        del state[name]
    return layer, state


@pytest.mark.parametrize("t", [rushlight, reference], ids=["rushlight", "torch"])
def test_a_spectral_norm_of_the_first_version_gets_its_second_vector(t: Any) -> None:
    layer, state = old_file(t, ())
    other = t.nn.utils.spectral_norm(t.nn.Linear(3, 2)).eval()
    other.load_state_dict(state)
    x = t.arange(6.0).view(2, 3)
    t.testing.assert_close(other(x), layer(x), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("t", [rushlight, reference], ids=["rushlight", "torch"])
def test_what_such_a_file_lacks_is_named(t: Any) -> None:
    _, state = old_file(t, ("weight_u",))
    other = t.nn.utils.spectral_norm(t.nn.Linear(3, 2))
    with pytest.raises(RuntimeError, match="weight_u"):
        other.load_state_dict(state)


def test_a_removed_spectral_norm_leaves_no_version_behind() -> None:
    layer = rushlight.nn.utils.spectral_norm(rushlight.nn.Linear(3, 2))
    rushlight.nn.utils.remove_spectral_norm(layer)
    assert layer.state_dict()._metadata[""] == {"version": 1}  # type: ignore[attr-defined]
    assert not layer._load_state_dict_pre_hooks


def test_a_variance_is_a_number_or_a_tensor() -> None:
    answers = []
    for t in (rushlight, reference):
        x = t.arange(6.0).view(2, 3)
        answers.append(t.nn.functional.gaussian_nll_loss(x, x + 1, 2.0).item())
        with pytest.raises(ValueError, match="negative"):
            t.nn.functional.gaussian_nll_loss(x, x, -1.0)
    assert answers[0] == pytest.approx(answers[1])


def test_a_layer_says_which_activation_is_fused() -> None:
    kinds: list[Callable[[Any], Any]] = [
        lambda t: "relu", lambda t: t.nn.GELU(), lambda t: t.nn.functional.gelu, lambda t: t.tanh, lambda t: t.nn.ReLU(),
    ]  # fmt: skip
    for kind in kinds:
        ours, theirs = (
            t.nn.TransformerEncoderLayer(4, 2, 8, activation=kind(t)).activation_relu_or_gelu
            for t in (rushlight, reference)
        )
        assert ours == theirs
