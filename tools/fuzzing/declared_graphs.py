"""Declared differences of graphs, hooks, modes and custom functions."""

from __future__ import annotations

import re

from .comparing import Difference
from .declaring import Declared, refused_by, statement, text
from .program import Raised


def cycle(difference: Difference) -> bool:
    """Whether a tensor hangs in the cycle that backward(create_graph=True) warns of."""
    return difference.what == "alive" and re.search(r"backward\(.*create_graph=True", text(difference)) is not None


def changed_by_itself(difference: Difference) -> bool:
    """Whether PyTorch's operator counts a change of its own result."""
    if (
        difference.what != "version"
        or isinstance(difference.reference, Raised)
        or isinstance(difference.subject, Raised)
    ):
        return False
    more = difference.reference - difference.subject
    product = more == 1 and re.search(r" @ |\.mv\(", text(difference)) is not None
    return product or (more > 0 and "inference_mode" in text(difference))


def detached_inference(difference: Difference) -> bool:
    """Whether PyTorch counts the changes of what an inference tensor was detached to."""
    told = isinstance(difference.subject, Raised) and "Inference tensors" in difference.subject.message
    return difference.what == "version" and told and re.search(r"\.data\b|detach\(", text(difference)) is not None


def reinterpreted(difference: Difference) -> bool:
    """Whether a view as another dtype is an inference tensor on one side alone, or is refused for it."""
    told = difference.what == "is_inference" or refused_by(difference, "inference tensor outside InferenceMode")
    return told and re.search(r"\.view\(torch\.", text(difference)) is not None


def dirty_inside(difference: Difference) -> bool:
    """Whether a custom function changes an input, or saves one that it returns, inside of a transformation."""
    inside = re.search(r"torch\.func\.", statement(difference)) is not None
    phrases = "Some elements marked as dirty during the forward", "An input that has been returned as-is"
    return inside and refused_by(difference, *phrases, by="reference")


def no_samples(difference: Difference) -> bool:
    """Whether a custom function runs over a batch of nothing."""
    return "vmap(" in statement(difference) and refused_by(difference, "select(): index 0 out of range", by="reference")


def unneeded(difference: Difference) -> bool:
    """Whether a saved tensor that no gradient asks for was changed."""
    runs = re.search(r"backward\(|grad\(", statement(difference)) is not None
    return runs and refused_by(difference, "its base or another view of its base has been modified", by="reference")


GRAPHS: tuple[Declared, ...] = (
    Declared("the cycle that `backward(create_graph=True)` makes", cycle),
    Declared("version counters of products, and of results of inference tensors", changed_by_itself),
    Declared("`detach()` and `.data` of an inference tensor", detached_inference),
    Declared("`view(dtype)` of inference tensors, and in inference mode", reinterpreted),
    Declared("custom functions that change an input, or save one that they return, inside `torch.func`", dirty_inside),
    Declared("`vmap` of a custom function with `generate_vmap_rule` over no samples", no_samples),
    Declared("saved tensors that were changed and that the gradients asked for do not need", unneeded),
    Declared(
        "a tensor's saved value after `x.detach_()`",
        lambda d: refused_by(d, "saved tensor that has been detached in-place", by="reference"),
    ),
    Declared(
        "`jvp` of a custom function that changes its input in place",
        lambda d: refused_by(d, "is not modifying the forward mode gradients inplace", by="reference"),
    ),
    Declared(
        "strides of a transposed or expanded tensor without elements",
        lambda d: refused_by(d, "Tensor must have a last dimension with stride 1", by="reference"),
    ),
)
