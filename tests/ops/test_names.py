"""Public functions go by their public names: in what they say of themselves, in messages, in pickles."""

from __future__ import annotations

import pickle
import types
from collections import defaultdict
from typing import Any

import pytest

import rushlight as torch
import rushlight.nn.functional as F

SPACES: dict[str, Any] = {
    "torch": torch, "F": F, "linalg": torch.linalg, "special": torch.special, "fft": torch.fft, "Tensor": torch.Tensor
}  # fmt: skip
RENAMED = [torch.sum, torch.any, torch.all, torch.round, torch.add, torch.sub, torch.pow, torch.conj, torch.threshold,
           torch.svd, F.relu, F.softmax, F.log_softmax, torch.linalg.cross, torch.Tensor.backward, torch.Tensor.type,
           torch.Tensor.where, torch.ctc_loss, torch.layer_norm, torch.channel_shuffle]  # fmt: skip


def test_functions_go_by_one_of_their_public_names() -> None:
    names: dict[Any, set[str]] = defaultdict(set)
    for space in SPACES.values():
        for name in dir(space):
            found = getattr(space, name, None)
            if isinstance(found, types.FunctionType) and not name.startswith("_"):
                names[found].add(name)
    parts = ("linalg_", "fft_", "special_")  # as PyTorch has them; their __qualname__ is what pickle looks for
    wrong = [
        f"{fn.__name__} is {known}"
        for fn, known in names.items()
        if fn.__name__ not in known and not any(fn.__name__ == part + name for part in parts for name in known)
    ]
    assert not wrong
    assert not [fn for fn in names if "<locals>" in fn.__qualname__ and fn.__qualname__.endswith("inplace")]


@pytest.mark.parametrize(("name", "call"), [
    ("sum", lambda x: x.sum(foo=1)), ("all", lambda x: torch.all(x, foo=1)), ("relu", lambda x: F.relu(x, foo=1)),
    ("softmax", lambda x: F.softmax(x, foo=1)), ("Tensor.backward", lambda x: x.backward(foo=1)),
    ("round", lambda x: x.round(foo=1)), ("add", lambda x: torch.add(x, x, foo=1)),
])  # fmt: skip
def test_messages_say_the_public_name(name: str, call: Any) -> None:
    with pytest.raises(TypeError, match=rf"^{name}\(\) got an unexpected keyword argument 'foo'"):
        call(torch.ones(2))


@pytest.mark.parametrize("fn", RENAMED, ids=lambda fn: fn.__qualname__)
def test_they_can_be_pickled(fn: Any) -> None:
    assert pickle.loads(pickle.dumps(fn)) is fn
