"""The modes in which each call is replayed; every one gives what JSON can write down."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from tools.replaying import notes
from tools.replaying.cases import Case, flat

import rushlight as torch
from rushlight.autograd import forward_ad


def moving(tensors: list[Any]) -> list[Any]:
    """Those that may have a gradient."""
    return [t for t in tensors if t.is_floating_point() or t.is_complex()]


def leaves(case: Case) -> list[Any]:
    """The tensors of a case, all that can requiring gradients."""
    made = case.tensors()
    for t in moving(made):
        t.requires_grad_()
    return made


def told(results: Any) -> list[Any]:
    return [notes.tensor(t) for t in results]


def plain(case: Case) -> Any:
    made = case.tensors()
    return [told(case.run(*made)), told(made)]


def recorded(case: Case) -> Any:
    results = case.run(*leaves(case))
    return [told(results), notes.graph([t for t in results if isinstance(t, torch.Tensor)])]


def gradients(case: Case, create_graph: bool = False) -> tuple[list[Any], Any]:
    """The inputs, and gradients of the sum of all results that have any."""
    made = leaves(case)
    results = [t for t in case.run(*made) if isinstance(t, torch.Tensor) and t.requires_grad]
    cotangents = [torch.ones_like(t) * (i + 1) for i, t in enumerate(results)]
    return made, torch.autograd.grad(results, moving(made), cotangents, create_graph=create_graph, allow_unused=True)


def first_order(case: Case) -> Any:
    return told(gradients(case)[1])


def second_order(case: Case) -> Any:
    made, first = gradients(case, True)
    found = [t for t in first if t is not None]
    again = [t.sum().abs() for t in found if t.requires_grad]
    second = torch.autograd.grad(again, moving(made), allow_unused=True) if again else ()
    return [told(found), notes.graph(found), told(second)]


def accumulated(case: Case) -> Any:
    """`backward`, twice: gradients accumulate, and the second run through one graph is refused."""
    made = leaves(case)
    results = [t for t in case.run(*made) if isinstance(t, torch.Tensor) and t.requires_grad]
    total = sum(t.abs().sum() for t in results)
    total.backward()
    try:
        total.backward()
        refused: Any = None
    except RuntimeError as raised:
        refused = notes.error(raised)
    return [told([t.grad for t in made]), refused]


def without(case: Case) -> Any:
    with torch.no_grad():
        return told(case.run(*leaves(case)))


def inference(case: Case) -> Any:
    made = leaves(case)
    with torch.inference_mode():
        return told(case.run(*made))


def forward_mode(case: Case) -> Any:
    with forward_ad.dual_level():
        made = [forward_ad.make_dual(t, torch.ones_like(t)) if moving([t]) else t for t in case.tensors()]
        found = [forward_ad.unpack_dual(t) if isinstance(t, torch.Tensor) else (t, None) for t in case.run(*made)]
        return [told(pair) for pair in found]


def samples(case: Case) -> list[Any]:
    """Each tensor twice, one the reverse of the other."""
    return [torch.stack([t, t.flip(tuple(range(t.dim())))]) for t in case.tensors()]


def mapped(case: Case) -> Any:
    return told(flat(torch.func.vmap(case.run, randomness="different")(*samples(case))))


def mapped_gradients(case: Case) -> Any:
    """Gradients taken inside of vmap."""

    def inside(*tensors: Any) -> Any:
        own = [t.detach().requires_grad_() if moving([t]) else t for t in tensors]
        results = [t for t in case.run(*own) if t.requires_grad]
        return torch.autograd.grad(results, moving(own), [torch.ones_like(t) for t in results], allow_unused=False)

    return told(torch.func.vmap(inside, randomness="different")(*samples(case)))


def hooked(case: Case) -> Any:
    """What saved-tensor hooks are given, in order."""
    given: list[Any] = []

    def pack(t: Any) -> Any:
        given.append(notes.tensor(t))
        return t

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        made = leaves(case)
        results = case.run(*made)
    wanted = [t for t in results if isinstance(t, torch.Tensor) and t.requires_grad]
    grads = torch.autograd.grad(wanted, moving(made), [torch.ones_like(t) for t in wanted], allow_unused=True)
    return [given, told(grads)]


def profiled(case: Case) -> Any:
    """The operators and nodes that run, in order."""
    with torch.autograd.profiler.profile() as profile:
        gradients(case)
    return [event.name for event in profile.function_events]


def kept(case: Case) -> Any:
    """The bytes that a recording finds allocated, by category and operator."""
    torch.memory.record_history()
    try:
        results = case.run(*leaves(case))
        blocks = torch.memory.snapshot()
    finally:
        torch.memory.record_history(None)
    del results
    return sorted(seen(blocks))


def seen(snapshot: Any) -> list[Any]:
    """Sizes of the blocks of a snapshot that were made while it was taken."""
    traces = snapshot["device_traces"] if isinstance(snapshot, dict) else []
    return [[event["action"], event["size"]] for trace in traces for event in trace if event["size"] >= 128]


def stale(case: Case) -> Any:
    """What backward says after each input and each result was changed in place."""
    found = []
    count = len(case.tensors()) + len(case.run(*case.tensors()))
    for position in range(count):
        made = leaves(case)
        results = case.run(*made)
        target = (*made, *results)[position]
        wanted = [t for t in results if isinstance(t, torch.Tensor) and t.requires_grad]
        if not wanted or not isinstance(target, torch.Tensor):
            continue
        try:
            with torch.no_grad():
                target.zero_()
            version = target._version
            grads = torch.autograd.grad(wanted, moving(made), [torch.ones_like(t) for t in wanted], allow_unused=True)
            found.append([version, told(grads)])
        except Exception as raised:
            found.append(notes.error(raised))
    return found


def apart(case: Case) -> Any:
    """On tensors whose elements lie apart in memory."""
    made = [torch.stack([t, t], -1)[..., 0] if t.dim() else t for t in case.tensors()]
    for t in moving(made):
        t.requires_grad_()
    return told(case.run(*made))


def empty(case: Case) -> Any:
    """On tensors without elements, and on lists: results, or what is raised."""
    found: list[Any] = []
    for change in (lambda t: t[:0] if t.dim() else t, lambda t: t.tolist(), lambda t: t.unsqueeze(0)):
        made = [change(t) for t in case.tensors()]
        try:
            found.append(told(case.run(*made)))
        except Exception as raised:
            found.append(notes.error(raised))
    return found


MODES: dict[str, Callable[[Case], Any]] = {
    "plain": plain, "grad": recorded, "first order": first_order, "second order": second_order, "backward": accumulated,
    "no_grad": without, "inference": inference, "forward mode": forward_mode, "vmap": mapped,
    "vmap of gradients": mapped_gradients, "saved hooks": hooked, "recording": profiled, "memory": kept,
    "changed": stale, "apart": apart, "refused": empty}  # fmt: skip
SHORT = ("plain", "grad", "first order", "forward mode", "vmap")  # for other dtypes than float64


def replayed(case: Case, mode: str) -> dict[str, Any]:
    """One line: a case in a mode, what came of it or was raised, and what was warned of."""
    line: dict[str, Any] = {"case": case.name, "mode": mode}
    torch.manual_seed(0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            line["found"] = MODES[mode](case)
        except Exception as raised:
            line["raised"] = notes.error(raised)
    said = sorted({str(each.message).splitlines()[0] for each in caught if each.category is not RuntimeWarning})
    if said:
        line["warned"] = said
    return line
