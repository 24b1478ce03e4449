"""Declared differences of graphs, hooks, modes and custom functions."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from .comparing import Difference, hold
from .declared_operators import IN_PIECES
from .declaring import Declared, refused_by, statement, text
from .observing import Seen
from .operands import (
    CHANGE,
    Rewrite,
    agree,
    agree_without,
    agree_without_refused,
    as_with_copies,
    both,
    executed,
    has_empty,
    tensors_in,
)
from .program import Raised

WITHOUT_GRADIENTS = """\
for _x in list(globals().values()):
    if hasattr(_x, "zero_grad"):
        _x.zero_grad()
    if isinstance(_x, torch.Tensor):
        _x.grad = None"""


def cycle(difference: Difference) -> bool:
    """Whether a tensor hangs in the cycle that backward(create_graph=True) warns of: through a `.grad`, and freed without."""
    if difference.what != "alive" or re.search(r"(backward|grad)\(.*create_graph=True", text(difference)) is None:
        return False
    named = [
        line for line in difference.statements if not line.startswith("del ")
    ]  # the gradient of a leaf without a name is out of reach
    found = hold([*named, WITHOUT_GRADIENTS], *both(difference))
    return not any(other.what == "alive" or other.step is not None for other in found)


def changed_by_itself(difference: Difference) -> bool:
    """Whether PyTorch's operator counts a change of its own result."""
    if (
        difference.what != "version"
        or isinstance(difference.reference, Raised)
        or isinstance(difference.subject, Raised)
    ):
        return False
    more = difference.reference - difference.subject
    if "torch.func.jvp(" in text(difference) and difference.where.startswith("t"):
        return more > 0
    product = more == 1 and re.search(r" @ |\.mv\(", text(difference)) is not None
    return product or (more > 0 and "inference_mode" in text(difference))


def detached_inference(difference: Difference) -> bool:
    """Whether PyTorch counts the changes of what an inference tensor was detached to."""
    told = isinstance(difference.subject, Raised) and "Inference tensors" in difference.subject.message
    return difference.what == "version" and told and re.search(r"\.data\b|detach\(", text(difference)) is not None


def reinterpreted(difference: Difference) -> bool:
    """Whether a view as another dtype is an inference tensor on one side alone: is refused for it, or counts no changes."""
    refused = any(refused_by(difference, "nference", by=side) for side in ("reference", "subject"))
    asked = re.search(rf"(?m)^\s*{re.escape(difference.where)} = \w+\.is_inference\(\)$", text(difference)) is not None
    invalid = "A view was created in inference mode" in getattr(
        difference.subject, "message", ""
    )  # with what changed it
    told = difference.what in ("is_inference", "version") or refused or asked or invalid
    made = re.search(r"\.view\(torch\.", text(difference)) and "inference_mode" in text(difference)
    return bool(made) and (
        told or agree(difference, lambda line: re.sub(r"(\.view\(torch\.\w+\))", r"\1.clone()", line))
    )


def view_beside_inference(difference: Difference) -> bool:
    """Whether a view that inference mode made of what requires grad meets an inference tensor, which it would save."""
    made = re.search(r"inference_mode[^:]*:\n(.*\n)*?\s+\w+ = \w+[.\[]", text(difference)) is not None
    return made and refused_by(difference, "Inference tensors cannot be saved for backward")


def fewer_unpacked(difference: Difference) -> bool:
    """Whether hooks unpacked fewer saved tensors, in the same order."""
    there, here = difference.reference, difference.subject
    if difference.where != "log" or not isinstance(there, list) or not isinstance(here, list):
        return False
    if not re.search(r"\.grad\(|inputs=", text(difference)) or len(here) >= len(there):
        return False
    return [x for x in there if x != "unpack"] == [x for x in here if x != "unpack"]


BACKWARD = re.compile(r"def backward\(ctx, (.*)\):\n( +)")


def not_called_for_none(line: str) -> str:
    """A statement whose custom functions return at once from a backward to which no gradient came."""
    return BACKWARD.sub(
        lambda found: (
            f"{found[0]}if all(g is None for g in [{found[1]}]):\n{found[2]}    return (None,) * 9\n{found[2]}"
        ),
        line,
    )


def without_gradients(difference: Difference) -> bool:
    """Whether PyTorch calls the backward of a custom function for which no gradient arrived, and which wants no zeros."""
    return "set_materialize_grads(False)" in text(difference) and agree(difference, not_called_for_none)


def recorded_in_inference(difference: Difference) -> bool:
    """Whether a custom function is recorded in inference mode, where gradients are enabled inside of it."""
    inside = re.search(r"inference_mode\((?s:.*?)\btorch\.(enable_grad|set_grad_enabled\(True)", text(difference))
    if inside is None or ".apply(" not in text(difference):
        return False
    told = difference.what in ("requires_grad", "is_leaf", "grad_fn", "is_inference", "version", "grad")
    unrecorded = r"\b(enable_grad\(|set_grad_enabled\(True)"
    return told or agree(difference, lambda line: re.sub(unrecorded, "set_grad_enabled(False", line))


HOOKED = re.compile(r"register_multi_grad_hook\(\[([\w, ]+)\]|\b(\w+)\.register_(?!multi)\w*hook\(")


def late_hooks(difference: Difference) -> list[str]:
    """The statements that register a hook of a tensor that has hooks from before it, or memory that it lies on, was changed."""
    import rushlight

    names: dict[str, Any] = {"torch": rushlight}
    first: list[tuple[Any, int]] = []  # tensors that have hooks, and how often they had been changed at the first
    late = []
    for line in difference.statements:
        try:
            exec(line, names)
        except Exception:
            continue
        hooked = [name for pair in HOOKED.findall(line) for name in ", ".join(filter(None, pair)).split(", ")]
        for x in filter(rushlight.is_tensor, map(names.get, hooked)):
            since = next((version for other, version in first if other is x), None)
            if since is None:
                first.append((x, x._version))
            elif since != x._version:
                late.append(line)
    return late


def hooks_around_a_change(difference: Difference) -> bool:
    """Whether numbers, or what hooks wrote, differ by those that a tensor with hooks got after a change in place."""
    if difference.what not in ("value", "grad") and not difference.where.startswith("log"):
        return False
    late = late_hooks(difference)
    return bool(late) and agree(difference, lambda line: "" if line in late else line)


def hooks_of_one_node(difference: Difference) -> bool:
    """Whether what hooks wrote differs by those of the node of a linear layer, or of an index of several dimensions.

    In PyTorch that is the last of several, which has another input.
    """
    if not difference.where.startswith("log"):
        return False
    names, _ = executed(difference)
    hooked = [
        (line, name)
        for line in difference.statements
        for name in re.findall(r"\b(\w+)\.grad_fn\.register_hook\(", line)
    ]
    several = [
        line
        for line, name in hooked
        if "LinearBackward" in str(getattr(names.get(name), "grad_fn", None))
        or re.search(rf"(?m)^\s*{name} = \w+\[.*,.*\]$", text(difference))
    ]
    return bool(several) and agree(difference, lambda line: "" if line in several else line)


def kept(line: str) -> str:
    """A statement whose backward passes free nothing."""
    line = re.sub(r"retain_graph=False", "retain_graph=True", line)
    passes = r"(?m)^(?!.*retain_graph)(.*(?:\.backward\(|autograd\.grad\().*)\)$"
    return re.sub(passes, r"\1, retain_graph=True)", line).replace("(, ", "(")


def freed_and_not_reached(difference: Difference) -> bool:
    """Whether PyTorch refuses to run what was freed although no gradient arrives there, perhaps before hooks run."""
    freed = "backward through the graph a second time"
    told = refused_by(difference, freed, by="reference") or (
        difference.where.startswith("log")
        and any(freed in there and freed not in here for there, here in difference.refusals)
    )
    return told and re.search(r"return .*\bNone\b", text(difference)) is not None and agree(difference, kept)


DOES_NOT_REQUIRE_GRAD = "does not require grad", "One of the differentiated Tensors does not require grad"


def unmarked_samples(difference: Difference) -> bool:
    """Whether a custom function's mark that an output is not differentiable is lost in the rule that vmap makes of it."""
    made = "generate_vmap_rule" in text(difference) and "mark_non_differentiable" in text(difference)
    told = difference.what in ("requires_grad", "is_leaf", "grad_fn")
    told = told or (
        difference.where.startswith("g") and difference.subject is None
    )  # what leads nowhere has no gradient
    refused = refused_by(difference, "does not require grad")
    lost = difference.what == "leniency" and re.search(r"backward\(|grad\(", statement(difference)) is not None
    return made and "vmap(" in text(difference) and (told or refused or lost)


FUNCTION = re.compile(r"F\.apply\((\w+),")


def saved_of_a_changed_view(difference: Difference) -> bool:
    """Whether a custom function that changes a view and saves it is differentiated twice, and runs once more in PyTorch for that.

    Of memory that is no view of another's the sides agree.
    """
    program = text(difference)
    if not all(word in program for word in ("mark_dirty(", "save_for_backward(", "create_graph=True")):
        return False
    names, _ = executed(difference)
    views = [name for name in FUNCTION.findall(program) if getattr(names.get(name), "_is_view", bool)()]
    made = re.compile(rf"(?m)^({'|'.join(views)}) = (.*)$")
    return bool(views) and agree(difference, lambda line: made.sub(r"\1 = (\2).clone()", line))


def marked_inside(difference: Difference) -> bool:
    """Whether a custom function's mark on an output that is a view is lost to what is around a transformation."""
    made = re.search(r"torch\.func\.\w+\(", text(difference)) and "mark_non_differentiable" in text(difference)
    told = difference.what in ("requires_grad", "is_leaf") or (
        difference.what == "grad_fn" and difference.subject is None
    )
    return bool(made) and (told or refused_by(difference, *DOES_NOT_REQUIRE_GRAD))


def softmax_of_one(difference: Difference) -> bool:
    """Whether the derivative of the softmax of single numbers, which is zero, is outside of the graph in PyTorch's vmap."""
    told = difference.what in ("requires_grad", "is_leaf") and difference.subject is (difference.what != "is_leaf")
    return told and re.search(r"softmax\(", text(difference)) is not None and "vmap(" in text(difference)


def dirty_inside(difference: Difference) -> bool:
    """Whether a custom function changes an input, or saves one that it returns, inside of a transformation."""
    inside = re.search(r"torch\.func\.", statement(difference)) is not None
    phrases = "Some elements marked as dirty during the forward", "An input that has been returned as-is"
    return inside and refused_by(difference, *phrases, by="reference")


def no_samples(difference: Difference) -> bool:
    """Whether a custom function runs over a batch of nothing, or backwards over it."""
    phrases = "select(): index 0 out of range", "cannot reshape tensor of 0 elements"
    generated = r"generate_vmap_rule = True(?s:.*)vmap\("
    backwards = re.search(generated, text(difference)) is not None and has_empty(difference)
    return ("vmap(" in statement(difference) or backwards) and refused_by(difference, *phrases, by="reference")


def unneeded(difference: Difference) -> bool:
    """Whether a saved tensor that no gradient asks for was changed."""
    runs = re.search(r"backward\(|grad\(", statement(difference)) is not None
    changed = "its base or another view of its base has been modified", "modified by an inplace operation"
    return runs and refused_by(difference, *changed, by="reference") and as_with_copies(difference)


def refused_before_hooks(difference: Difference) -> bool:
    """Whether hooks ran here before one of them raised, and PyTorch refuses for a saved tensor that nobody asks for."""
    saved = "modified by an inplace operation", "its base or another view of its base has been modified"
    told = any(word in there and word not in here for there, here in difference.refusals for word in saved)
    return told and difference.where.startswith("log") and agree_without_refused(difference)


UNPACKED = "Output of saved tensor unpack_hook for"


def unpacked_otherwise(difference: Difference) -> bool:
    """Whether what a hook unpacked, of another shape or dtype, is refused here before PyTorch goes on with it."""
    if refused_by(difference, UNPACKED):
        return True
    earlier = any(UNPACKED in here and UNPACKED not in there for there, here in difference.refusals)
    return earlier and difference.where.startswith("log") and agree_without_refused(difference)


PIECES = re.compile(rf"\.({IN_PIECES})\w*\([^()]*\)")


def zeros_for_none(difference: Difference) -> bool:
    """Whether a second derivative is a tensor of zeros there and None here, as a smooth function's is not."""
    there = difference.reference
    zeros = isinstance(there, Seen) and difference.subject is None and not np.any(there.facts.get("value", 1))
    made = re.search(rf"{PIECES.pattern}(?s:.*)create_graph=True", text(difference)) is not None
    return zeros and made and agree(difference, lambda line: PIECES.sub(".exp()", line))


def by_the_result_of_cumprod(difference: Difference) -> bool:
    """Whether a second derivative by the result of cumprod is another here, where there is a 0 among the factors."""
    if difference.what != "value" or not difference.where.startswith("g"):
        return False
    product = r"\.(cumprod_?\()"
    smooth = {"cumprod(": ".exp().cumprod(", "cumprod_(": ".exp_().cumprod_("}  # whose factors are no zeros
    return re.search(product, text(difference)) is not None and agree(
        difference, lambda line: re.sub(product, lambda found: smooth[found[1]], line)
    )


def run_for_zeros(difference: Difference) -> bool:
    """Whether PyTorch runs more or frees more for a second derivative that is a graph of zeros there, as a smooth function's is not."""
    there, here = difference.reference, difference.subject
    return (
        difference.where == "log"
        and isinstance(there, list)
        and isinstance(here, list)
        and re.search(rf"{PIECES.pattern}(?s:.*)create_graph=True", text(difference)) is not None
        and agree(difference, lambda line: PIECES.sub(".exp()", line))
    )


def views_of_nothing(difference: Difference) -> bool:
    """Whether a hook is called with zeros here alone, behind a view without elements whose base was changed in place."""
    there, here = difference.reference, difference.subject
    if difference.where != "log" or not (isinstance(there, list) and isinstance(here, list) and len(there) < len(here)):
        return False
    empty = any(hasattr(x, "grad_fn") and 0 in x.shape for x in executed(difference)[0].values())
    return empty and "create_graph=True" in text(difference) and agree_without(difference, CHANGE.pattern)


def one_node(difference: Difference) -> bool:
    """Whether the node of a product or layer whose graph was freed is to run, which PyTorch makes several of."""
    freed = (f"the graph was freed at {name}Backward" for name in ("Bmm", "Linear", "Matmul"))
    if not refused_by(difference, *freed):
        return False
    again = re.search(r"backward\(.*inputs=", statement(difference)) is not None
    return again or (re.search(r"backward\(.*inputs=", text(difference)) is not None and agree(difference, kept))


SAVED = (
    "modified by an inplace operation",
    "backward through the graph a second time",
    "ZeroDivisionError",
    "pack hook",
    "allow_mutation_on_saved_tensors",
    "Inference tensors cannot be saved for backward",
    "A view was created in no_grad mode and its base",
)
TARGET = re.compile(r"(?m)^(\s*(?:with .*|[\w.]+(?:\[.*?\])? [-+*/]?= )?)(.*)$")


def with_constants_for(names: list[str]) -> Rewrite:
    """What writes a statement with operands that nothing is recorded of for these names."""
    operands = re.compile(rf"\b({'|'.join(names)})\b(?!\.(detach|requires_grad_|register_|retain_grad))")
    return lambda line: TARGET.sub(lambda found: found[1] + operands.sub(r"\1.detach()", found[2]), line)


def saved_for_nothing(difference: Difference) -> bool:
    """Whether PyTorch alone saves what no gradient passes, of views that were not recorded, of what requires grad.

    With what they show in their place, of which nothing is saved on either side, the sides agree.
    """
    refused = refused_by(difference, *SAVED, "trying to save more tensors during recomputation", by="reference")
    saving = "saved_tensors_hooks(", "checkpoint("  # inside of which it is computed again once it is asked for
    packed = difference.where == "log" and any(words in text(difference) for words in saving)
    if not (refused or packed):
        return False
    left = ((name, value) for name, value in executed(difference)[0].items() if list(tensors_in(value)) == [value])
    views = [name for name, value in left if value._unrecorded() and value.requires_grad]
    return bool(views) and agree(difference, with_constants_for(views))


def refused_before_it_runs(difference: Difference) -> bool:
    """Whether the function of a checkpoint ran in PyTorch before a changed view among its arguments was refused by both."""
    changed = "its base or another view of its base has been modified"
    refused = any(changed in there and changed in here for there, here in difference.refusals)
    return refused and difference.where == "log" and agree_without_refused(difference, r"checkpoint\(")


CALLED = re.compile(r"checkpoint\.checkpoint\((\w+), ")


def not_used_by_a_checkpoint(difference: Difference) -> bool:
    """Whether an argument that no operator takes is refused for a function that takes it to none: with one both refuse it."""
    refused = refused_by(difference, "its base or another view of its base has been modified")
    used = r"checkpoint.checkpoint(lambda *a: \1(*(x * 1 if isinstance(x, torch.Tensor) else x for x in a)), "
    return (
        refused
        and CALLED.search(statement(difference)) is not None
        and agree(difference, lambda s: CALLED.sub(used, s))
    )


def computed(found: object) -> bool:
    """Whether a hook wrote a gradient or a number, or a list of such."""
    return all(map(computed, found)) if isinstance(found, list) else isinstance(found, Seen | float | int)


def not_computed(difference: Difference) -> bool:
    """Whether a hook of a node saw no gradient where nobody asks for one, which PyTorch computes all the same."""
    return (
        difference.where.startswith("log[")
        and difference.subject is None
        and computed(difference.reference)
        and re.search(r"(stack|cat)\((?s:.*)\.grad_fn\.register_hook\(", text(difference)) is not None
    )


def first_of_all(difference: Difference) -> bool:
    """Whether a hook of several tensors that waits for the one that backward begins with makes all of the difference."""
    if not difference.where.startswith("log"):
        return False
    waited = re.findall(r"register_multi_grad_hook\(\[([\w, ]+)\]", text(difference))
    begun = re.findall(r"\b(\w+)\.backward\(|(?:grad|backward)\(\[?(\w+)", text(difference))
    names, _ = executed(difference)
    awaited = [names.get(name) for listed in waited for name in listed.split(", ")]
    roots = [names.get(name) for pair in begun for name in pair if name]
    return any(one is root is not None for one in awaited for root in roots) and agree_without(
        difference, r"register_multi_grad_hook\("
    )


def returned_by_a_hook(difference: Difference) -> bool:
    """Whether a hook behind one that returned a tensor was called with it in PyTorch, before both refuse that tensor."""
    words = "post accumulate grad hooks should return None"
    refused = any(words in there and words in here for there, here in difference.refusals)
    there, here = difference.reference, difference.subject
    return (
        refused
        and difference.where == "log"
        and isinstance(there, list)
        and isinstance(here, list)
        and len(here) < len(there)
    )


def hook_of_a_lost_history(difference: Difference) -> bool:
    """Whether a hook is registered on the `grad_fn` of a view whose base was changed, which is lost to both."""
    lost = refused_by(difference, "'NoneType' object has no attribute 'register_")
    return lost and ".grad_fn.register_" in statement(difference) and CHANGE.search(text(difference)) is not None


def seen_by_a_layer(difference: Difference) -> bool:
    """Whether a hook saw the gradients of a layer's or product's node, which is the last of several in PyTorch."""
    return (
        difference.where.startswith("log[")
        and isinstance(difference.reference, list)
        and isinstance(difference.subject, list)
        and len(difference.reference) < len(difference.subject)
        and re.search(r"(torch\.nn\.Linear\(| @ )(?s:.*)\.grad_fn\.register_", text(difference)) is not None
    )


PRODUCTS = re.compile(r"(?m)^(\w+ = )(m\(\w+\)|\w+ @ \w+)$")


OPERANDS = re.compile(r"\b(\w+) @ (\w+)\b")


def packed_by_a_product(difference: Difference) -> bool:
    """Whether hooks saw what a product of broadcast operands, or of four dimensions and more, saves: in PyTorch views of three."""
    if not difference.where.startswith("log"):
        return False
    names, _ = executed(difference)
    pairs = [[names.get(name) for name in pair] for pair in OPERANDS.findall(text(difference))]
    known = [(a.shape, b.shape) for a, b in pairs if tensors_of(a) and tensors_of(b)]
    composed = any(max(len(a), len(b)) > 3 or a[:-2] != b[:-2] for a, b in known)
    return composed and agree(difference, lambda line: OPERANDS.sub(r"(\1.sum() * \2)", line))


def order_of_operands(difference: Difference) -> bool:
    """Whether hooks ran in another order because of a batched product, whose operands get their gradients in theirs here."""
    if not difference.where.startswith("log"):
        return False
    names, _ = executed(difference)
    pairs = [[names.get(name) for name in pair] for pair in OPERANDS.findall(text(difference))]
    batched = any(tensors_of(a) and tensors_of(b) and (a.dim(), b.dim()) not in ORDERED for a, b in pairs)
    return batched and agree(difference, lambda line: OPERANDS.sub(r"(\2.sum() * \1)", line))


ORDERED = {(2, 2), (2, 1), (1, 1)}  # dimensions of operands whose gradients come in their order in PyTorch, too


def tensors_of(value: Any) -> bool:
    """Whether it is a tensor."""
    return list(map(id, tensors_in(value))) == [id(value)]


def hook_of_the_last_of_several(difference: Difference) -> bool:
    """Whether a hook of a layer's or product's node did not run in PyTorch, where a change in place replaced the node.

    It is a view there, the last of several nodes, and none behind an operator of one node.
    """
    there, here = difference.reference, difference.subject
    return (
        difference.where == "log"
        and isinstance(there, list)
        and isinstance(here, list)
        and len(there) < len(here)
        and ".grad_fn.register_" in text(difference)
        and PRODUCTS.search(text(difference)) is not None
        and agree(difference, lambda line: PRODUCTS.sub(r"\1\2 * 1", line))
    )


GRAPHS: tuple[Declared, ...] = (
    Declared(
        "`grad(materialize_grads=True)` at a gradient edge",
        lambda d: refused_by(
            d, "materialize_grads cannot be used when the given input is a GradientEdge", by="reference"
        ),
    ),
    Declared("`checkpoint`: an argument that no operator takes", refused_before_it_runs),
    Declared("`checkpoint`: an argument that no operator takes", not_used_by_a_checkpoint),
    Declared("what a hook of a node sees of gradients that nobody asked for", not_computed),
    Declared('a multi-grad hook (`mode="all"`) with the one tensor that backward begins with', first_of_all),
    Declared("a post-accumulate hook that returns a tensor", returned_by_a_hook),
    Declared(
        "`.grad` of tensors that retain it, in `grad(is_grads_batched=True)`",
        lambda d: ".grad" in d.where and "retain_grad()" in text(d) and agree_without(d, r"is_grads_batched=True"),
    ),
    Declared("names in the graph of views that are changed afterwards", hook_of_a_lost_history),
    Declared("names in the graph", seen_by_a_layer),
    Declared("names in the graph", hook_of_the_last_of_several),
    Declared("a custom function that changes a view in place and saves it", saved_of_a_changed_view),
    Declared("what saved-tensor hooks are given of a product", packed_by_a_product),
    Declared("the order in which parameters of one recurrent layer", order_of_operands),
    Declared("views that were not recorded, of what requires grad", saved_for_nothing),
    Declared("`backward(inputs=[y])` where `y` is the product or linear layer of three dimensions", one_node),
    Declared("an unpack hook that gives a tensor of another shape or dtype", unpacked_otherwise),
    Declared("gradient of what is linear in pieces", run_for_zeros),
    Declared("views without elements whose base was changed in place", views_of_nothing),
    Declared("gradient of what is linear in pieces", zeros_for_none),
    Declared("the second derivative of `cumprod` by its result", by_the_result_of_cumprod),
    Declared("the cycle that `backward(create_graph=True)` makes", cycle),
    Declared("version counters of products, of results", changed_by_itself),
    Declared("`detach()` and `.data` of an inference tensor", detached_inference),
    Declared("`view(dtype)` of inference tensors, and in inference mode", reinterpreted),
    Declared("custom functions that change an input, or save one that they return, inside `torch.func`", dirty_inside),
    Declared("`vmap` of a custom function with `generate_vmap_rule` over no samples", no_samples),
    Declared("saved tensors that were changed and that the gradients asked for do not need", unneeded),
    Declared("saved tensors that were changed and that the gradients asked for do not need", fewer_unpacked),
    Declared("saved tensors that were changed and that the gradients asked for do not need", refused_before_hooks),
    Declared("a custom function in inference mode", recorded_in_inference),
    Declared("a second backward, where no gradient arrives at what the first one freed", freed_and_not_reached),
    Declared(
        "views that were not recorded, of what requires grad",
        lambda d: refused_by(d, "backward through the graph a second time") and "mark_non_differentiable" in text(d),
    ),
    Declared(
        "the shape of what was viewed, changed in place afterwards",
        lambda d: (
            refused_by(d, "Tensor must have a last dimension of size 2", by="reference")
            and re.search(r"\.(t|transpose|swap\w+|squeeze|unsqueeze)_\(", text(d)) is not None
        ),
    ),
    Declared(
        "a real or imaginary part whose shape was changed in place",
        lambda d: (
            refused_by(d, "doesn't match the broadcast shape", by="reference")
            and re.search(r"backward\(|grad\(", statement(d)) is not None
            and re.search(r"\.(real|imag)\b|view_as_real", text(d)) is not None
            and re.search(r"\.(t|transpose|swap\w+|squeeze|unsqueeze)_\(", text(d)) is not None
        ),
    ),
    Declared("hooks registered after `unsqueeze_`", hooks_around_a_change),
    Declared("names in the graph", hooks_of_one_node),
    Declared(
        "`detach_()` of what has views that were changed",
        lambda d: (
            ".detach_()" in text(d)
            and d.what in ("grad", "grad_fn")
            and d.subject is None
            and agree_without(d, r"\.detach_\(\)")
        ),
    ),
    Declared("a tensor hook where a gradient is None", without_gradients),
    Declared("views made in inference mode of what requires grad", view_beside_inference),
    Declared("`mark_non_differentiable` of a custom function with `generate_vmap_rule`", unmarked_samples),
    Declared("`mark_non_differentiable` of a view of an input, inside `torch.func`", marked_inside),
    Declared(
        "a hook on a view that a custom function, or an operator of several views, returned",
        lambda d: (
            refused_by(d, "This view was created inside a custom Function", "a function that returns multiple views")
            and "hook(" in statement(d)
        ),
    ),
    Declared("derivatives by `torch.func` and tangents that do not depend", softmax_of_one),
    Declared(
        "whether the tangent that a custom function's `jvp` returns is copied",
        lambda d: (
            "torch.func.jvp(" in text(d)
            and ((d.what == "storage" and "def jvp(" in text(d)) or str(d.reference) == "CopyBackwards")
        ),
    ),
    Declared(
        "names in the graph, and which of its outputs a tensor is, inside `torch.func`",
        lambda d: (
            "torch.func." in text(d)
            and (d.what == "output_nr" or (d.what == "grad_fn" and d.reference == "AliasBackward" and bool(d.subject)))
        ),
    ),
    Declared(
        "a tensor's saved value after `x.detach_()`",
        lambda d: refused_by(d, "saved tensor that has been detached in-place", by="reference"),
    ),
    Declared(
        "an index that is a number of each sample's own",
        lambda d: (
            refused_by(d, "vmap: It looks like you're", "get value out of a tracing tensor", by="reference")
            and re.search(r"vmap\(|linearize\(", statement(d)) is not None
            and re.search(r"\[[^\[]*\.long\(\)", text(d)) is not None
        ),
    ),
    Declared(
        "a complex tangent of a real tensor",
        lambda d: refused_by(d, ".jvp: the tangent of output") and refused_by(d, "its imaginary part"),
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
