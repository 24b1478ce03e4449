"""Pruning gives PyTorch's masks, names, combinations and errors."""

import copy
import importlib
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import rushlight
from rushlight.nn.utils import prune

WEIGHT = [[0.1, -2.0, 3.0, 0.4], [5.0, -0.6, 0.7, 0.8], [-0.9, 1.0, -0.05, 0.3]]


def layer(lib: Any) -> Any:
    made = lib.nn.Linear(4, 3)
    with lib.no_grad():
        made.weight.copy_(lib.tensor(WEIGHT))
        made.bias.copy_(lib.tensor([1.0, 2.0, -0.5]))
    return made


def pruning(lib: Any) -> Any:
    return importlib.import_module(f"{lib.__name__}.nn.utils.prune")


def scores(lib: Any) -> Any:
    return lib.arange(12.0).reshape(3, 4)


def with_random_structure(lib: Any) -> Any:
    """Which slices are drawn is random; how many is not."""
    m = pruning(lib).random_structured(layer(lib), "weight", 2, 0)
    return sorted(int(n) for n in m.weight_mask.sum(1))


def together(lib: Any, **options: Any) -> Any:
    net = lib.nn.Sequential(layer(lib), lib.nn.Linear(3, 2))
    with lib.no_grad():
        net[1].weight.copy_(lib.tensor([[0.01, 9.0, 8.0], [0.02, 0.03, 7.0]]))
    pairs = [(net[0], "weight"), (net[1], "weight")]
    pruning(lib).global_unstructured(pairs, pruning_method=pruning(lib).L1Unstructured, **options)
    return [net[0].weight_mask, net[1].weight_mask, pruning(lib).is_pruned(net)]


def twice(lib: Any, first: str, second: str) -> Any:
    """Two methods on one parameter, with what they leave behind."""
    p, m = pruning(lib), layer(lib)
    for which in (first, second):
        if which == "structured":
            p.ln_structured(m, "weight", amount=1, n=2, dim=0)
        elif which == "mask":
            p.custom_from_mask(m, "weight", lib.tensor([[1, 0, 1, 1]] * 3))
        else:
            p.l1_unstructured(m, "weight", amount=3)
    hook = next(iter(m._forward_pre_hooks.values()))
    return [m.weight_mask, m.weight, [type(h).__name__ for h in hook], len(m._forward_pre_hooks), len(hook)]


CASES: dict[str, Callable[[Any], Any]] = {
    "identity": lambda t: pruning(t).identity(layer(t), "weight").weight_mask,
    "l1 count": lambda t: pruning(t).l1_unstructured(layer(t), "weight", amount=5).weight_mask,
    "l1 share": lambda t: pruning(t).l1_unstructured(layer(t), "weight", amount=0.3).weight,
    "l1 bias": lambda t: pruning(t).l1_unstructured(layer(t), "bias", 1).bias_mask,
    "l1 none": lambda t: pruning(t).l1_unstructured(layer(t), "weight", 0).weight_mask,
    "l1 all": lambda t: pruning(t).l1_unstructured(layer(t), "weight", 1.0).weight_mask,
    "l1 by scores": lambda t: pruning(t).l1_unstructured(layer(t), "weight", 5, importance_scores=scores(t)).weight_mask,
    "ln rows": lambda t: pruning(t).ln_structured(layer(t), "weight", amount=1, n=2, dim=0).weight_mask,
    "ln columns": lambda t: pruning(t).ln_structured(layer(t), "weight", amount=0.5, n=1, dim=1).weight_mask,
    "ln last": lambda t: pruning(t).ln_structured(layer(t), "weight", amount=1, n=float("inf"), dim=-1).weight_mask,
    "ln by scores": lambda t: pruning(t).ln_structured(layer(t), "weight", 1, 2, 0, importance_scores=scores(t)).weight_mask,
    "random count": lambda t: pruning(t).random_unstructured(layer(t), "weight", 5).weight_mask.sum(),
    "random rows": with_random_structure,
    "mask": lambda t: pruning(t).custom_from_mask(layer(t), "weight", t.eye(3, 4)).weight,
    "global": lambda t: together(t, amount=7),
    "global share": lambda t: together(t, amount=0.25),
    "order of parameters": lambda t: [n for n, _ in pruning(t).l1_unstructured(layer(t), "weight", 5).named_parameters()],
    "state": lambda t: sorted(pruning(t).l1_unstructured(layer(t), "weight", 5).state_dict()),
    "output": lambda t: pruning(t).l1_unstructured(layer(t), "weight", 5)(t.ones(1, 4)),
    "removed": lambda t: pruning(t).remove(pruning(t).l1_unstructured(layer(t), "weight", 5), "weight").weight,
    "names after removal": lambda t: sorted(
        pruning(t).remove(pruning(t).l1_unstructured(layer(t), "weight", 5), "weight").state_dict()),
    "pruned": lambda t: [pruning(t).is_pruned(layer(t)), pruning(t).is_pruned(pruning(t).identity(layer(t), "bias"))],
    "of a tensor": lambda t: pruning(t).L1Unstructured(4).prune(scores(t) - 5.5),
    "of a tensor by a mask": lambda t: pruning(t).L1Unstructured(4).prune(scores(t), t.ones(3, 4).tril()),
    **{f"{a} then {b}": lambda t, a=a, b=b: twice(t, a, b) for a in ("l1", "structured", "mask")  # type: ignore[misc]
       for b in ("l1", "structured", "mask")},
    "too many": lambda t: pruning(t).l1_unstructured(layer(t), "weight", 13),
    "share above 1": lambda t: pruning(t).l1_unstructured(layer(t), "weight", 1.5),
    "negative": lambda t: pruning(t).l1_unstructured(layer(t), "weight", -1),
    "no number": lambda t: pruning(t).l1_unstructured(layer(t), "weight", "a"),
    "vector": lambda t: pruning(t).ln_structured(layer(t), "bias", 1, 2, 0),
    "dimension": lambda t: pruning(t).ln_structured(layer(t), "weight", 1, 2, 3),
    "scores of another shape": lambda t: pruning(t).l1_unstructured(layer(t), "weight", 1, importance_scores=t.ones(2)),
    "not pruned": lambda t: pruning(t).remove(layer(t), "weight"),
    "no parameters": lambda t: pruning(t).global_unstructured(3, pruning(t).L1Unstructured, amount=1),
    "global of slices": lambda t: pruning(t).global_unstructured(
        [(layer(t), "weight")], pruning(t).LnStructured, amount=1, n=2),
    "global scores": lambda t: pruning(t).global_unstructured(
        [(layer(t), "weight")], pruning(t).L1Unstructured, importance_scores=[], amount=1),
    "no method": lambda t: pruning(t).PruningContainer().add_pruning_method(3),
}  # fmt: skip


def outcome(lib: Any, call: Callable[[Any], Any]) -> Any:
    def plain(x: Any) -> Any:
        return [round(v, 5) for v in x.detach().double().flatten().tolist()] if isinstance(x, lib.Tensor) else x

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = call(lib)
    except (ValueError, TypeError, IndexError, RuntimeError, AssertionError) as error:
        return type(error)
    return [plain(x) for x in found] if isinstance(found, list | tuple) else plain(found)


@pytest.mark.parity
@pytest.mark.parametrize("name", CASES)
def test_as_pytorch(name: str) -> None:
    torch = pytest.importorskip("torch")
    assert outcome(rushlight, CASES[name]) == outcome(torch, CASES[name])


def test_a_pruned_layer_trains_its_original_and_keeps_zeros() -> None:
    m = prune.l1_unstructured(layer(rushlight), "weight", 5)
    optimizer = rushlight.optim.SGD(m.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        m(rushlight.ones(2, 4)).pow(2).sum().backward()
        optimizer.step()
    assert m.weight_orig.grad is not None
    m(rushlight.ones(2, 4))
    assert int((m.weight == 0).sum()) == 5 and bool((m.weight_orig.grad[m.weight_mask == 0] == 0).all())


def test_a_pruned_layer_can_be_copied_and_loaded() -> None:
    m = prune.l1_unstructured(layer(rushlight), "weight", 5)
    other = prune.identity(rushlight.nn.Linear(4, 3), "weight")
    other.load_state_dict(m.state_dict())
    x = rushlight.randn(2, 4)
    assert rushlight.equal(other(x), m(x))
    with pytest.raises(RuntimeError, match="deepcopy"):
        copy.deepcopy(m)  # its weight is computed, as in PyTorch
