"""Samples from PyTorch's databases of operators, without what only its own tests want of them."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any
from unittest import mock

import numpy as np


def drawn(samples: Callable[..., Iterable[Any]], *arguments: Any, most: int | None = None, **words: Any) -> list[Any]:
    """The first `most` (all) of what `op.sample_inputs` or `op.error_inputs` gives, drawn from the seed that they set.

    The seed is set before each sample: of all devices, and with the source of all callers looked up, to find the test among
    them (0.2 s, twice or three times), this took nearly all of the time.
    """
    from torch.testing._internal import common_utils

    with (
        mock.patch.object(common_utils, "set_rng_seed", seed_processor),
        mock.patch.object(inspect, "stack", return_value=[]),
    ):
        return list(islice(samples(*arguments, **words), most))


def seed_processor(seed: int) -> None:
    """Set what samples are drawn with, but of no device beside the processor."""
    import torch

    torch.default_generator.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)
