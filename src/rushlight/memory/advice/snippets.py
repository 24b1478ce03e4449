"""Code that does what a piece of advice says, to paste: its arguments are those that its figure was computed with.

`model`, `optimizer`, `x`, `y` and `loss_of` stand for the reader's; lines that belong into the loop say so.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from rushlight.memory.advice.techniques import IN_FLIGHT, Applied

Snippet = Callable[[Applied, int], str]
"""Makes the code of a technique as it was applied, for a peak in bytes."""

LOSS = "loss = loss_of(model(x))"


def joined(*parts: str) -> str:
    """Several pieces of code as one: imports first, once, and what goes into the loop last."""
    lines = [line for part in parts for line in part.splitlines()]
    imports = list(dict.fromkeys(line for line in lines if line.startswith(("import ", "from "))))
    bodies = ["\n".join(line for line in part.splitlines() if line not in imports).strip("\n") for part in parts]
    bodies.sort(key=lambda body: LOSS in body or "optimizer.step()" in body)
    return "\n".join([*imports, ""] if imports else []) + ("\n" if imports else "") + "\n\n".join(bodies)


def nothing(what: Applied, peak: int) -> str:
    """No code: the line is the reader's."""
    return ""


def leak(what: Applied, peak: int) -> str:
    """What is usually meant."""
    return "losses.append(loss.item())  # the number, without its graph"


def in_backward(what: Applied, peak: int) -> str:
    """The optimizer in backward."""
    clips, instead = "", ""
    if what.what:
        clips, instead = f", {what.what}", f", in place of {what.what.partition('=')[0]}_"
        instead += ": backward runs twice" if "norm" in what.what else ""
    return f"from rushlight import optim\n\noptim.in_backward(optimizer{clips})  # once, after making it{instead}"


def zero_grad(what: Applied, peak: int) -> str:
    """Gradients cleared early."""
    return "optimizer.step()\noptimizer.zero_grad()  # here, not before the next backward"


def no_grad(what: Applied, peak: int) -> str:
    """A forward that records nothing."""
    return "with torch.no_grad():  # around what no backward follows\n    output = model(x)"


def checkpoint(what: Applied, peak: int) -> str:
    """The parts wrapped in a store that computes again."""
    names = re.split(r"\.", what.what) if re.fullmatch(r"[\w.*]+", what.what) else ["*"]
    head = "from rushlight import stores\n\n"
    if "*" not in names:
        path = ".".join(["model", *names])
        return f"{head}{path} = stores.recompute()({path})  # once, after making the model"
    if names.index("*") == len(names) - 1:
        path = ".".join(["model", *names[:-1]])
        return (
            f"{head}for name, part in list({path}.named_children()):  # once, after making the model\n"
            f"    setattr({path}, name, stores.recompute()(part))"
        )
    pattern = r"\.".join(r"\d+" if name == "*" else name for name in names)
    return (
        f"import re\n{head}for name, part in list(model.named_modules()):  # once, after making the model\n"
        f'    if re.fullmatch(r"{pattern}", name):\n'
        '        parent, _, last = name.rpartition(".")\n'
        "        setattr(model.get_submodule(parent), last, stores.recompute()(part))"
    )


def disk(what: Applied, peak: int) -> str:
    """A store on disk that keeps as many tensors on their way as the figure allows."""
    return (
        f"from rushlight import stores\n\nwith stores.disk(memory={IN_FLIGHT * what.largest:_}):  # a folder in memory saves nothing\n"
        f"    {LOSS}"
    )


def batch(what: Applied, peak: int) -> str:
    """Two half batches to a step."""
    return (
        "for i, x in enumerate(loader):  # which gives batches of half the size\n"
        "    loss = loss_of(model(x)) / 2\n"
        "    loss.backward()\n"
        "    if i % 2:\n"
        "        optimizer.step()\n"
        "        optimizer.zero_grad()"
    )


def state(what: Applied, peak: int) -> str:
    """A budget below the peak."""
    return f"from rushlight import memory\n\nwith memory.budget({peak:_}):\n    train()"


def eight_bit(what: Applied, peak: int) -> str:
    """The 8-bit form of the optimizer, with the groups of the one that there is."""
    return f"from rushlight import optim\n\noptimizer = optim.{what.what}(optimizer.param_groups)  # before the first step, in its place"
