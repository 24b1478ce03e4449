"""Selective checkpointing: a policy says of each operator whether its results are kept or computed again."""

from __future__ import annotations

import enum
from typing import Any

from rushlight.basics.arrays import Array
from rushlight.basics.state import Setting, modes, set_mode
from rushlight.dispatch import call
from rushlight.dispatch.compute import compute
from rushlight.dispatch.declare import OPS, Op
from rushlight.generator import default_generator
from rushlight.levels import Level
from rushlight.ops.python.aten import Overload, overload_of
from rushlight.tensor import Tensor, wrap


class CheckpointPolicy(enum.Enum):
    """What becomes of an operator's results in a checkpointed function: see `create_selective_checkpoint_contexts`.

    MUST_SAVE and PREFER_SAVE keep them, MUST_RECOMPUTE and PREFER_RECOMPUTE compute them again; the CPU_OFFLOAD ones keep
    them in host memory. Nothing overrides a preference here.
    """

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


KEPT = (CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE, CheckpointPolicy.MUST_CPU_OFFLOAD,
        CheckpointPolicy.PREFER_CPU_OFFLOAD)  # fmt: skip
SAC_IGNORED_OPS = frozenset({"detach"})


class SelectiveCheckpointContext:
    """What a policy learns beside the operator: whether this is the second run."""

    def __init__(self, *, is_recompute: bool, op_output: Any = None):
        self.is_recompute, self.op_output = is_recompute, op_output


class Kept:
    """The results of one operator call of the first run."""

    __slots__ = ("aux", "outs", "random", "storages", "versions")

    def __init__(self, outs: tuple[Array, ...], aux: tuple[Array, ...], random: Any):
        self.outs, self.aux, self.random = outs, aux, random
        self.storages: list[Any] = []
        self.versions: list[int] = []


class Selecting(Level):
    """A level that sees every operator of one run: the first fills `kept`, the second takes from it."""

    def __init__(
        self, policy: Any, kept: dict[str, list[Any]], decided: dict[str, list[bool]], again: bool, mutation: bool
    ):
        self.policy, self.kept, self.decided, self.again, self.mutation = policy, kept, decided, again, mutation
        self.at: dict[str, int] = {}
        self.calls: dict[str, int] = {}

    def __enter__(self) -> None:
        self.at, self.calls = {}, {}
        self.former = set_mode("levels", (*modes.levels, self))

    def __exit__(self, *error: object) -> None:
        set_mode("levels", self.former)

    def owns(self, flat: tuple[Any, ...]) -> bool:
        """Whether any input is a tensor."""
        return True

    def without(self) -> Setting:
        """A context in which this level is not asked."""
        return Setting("levels", tuple(level for level in modes.levels if level is not self))

    def apply(self, op: Op, flat: tuple[Any, ...], statics: tuple[Any, ...]) -> Any:
        """Run `op`, or take what it gave in the first run."""
        inputs = flat if op.sequence is None else (*flat[: op.sequence], flat[op.sequence :])
        with self.without():
            if op.view or op.name in SAC_IGNORED_OPS or any(level.owns(flat) for level in modes.levels):
                return call.apply(op, inputs, statics, False)
            if not self.keeps(op, inputs, statics):
                return call.apply(op, inputs, statics, False)
            kept = self.taken(op) if self.again else None
            if kept is None:
                kept = self.computed(op, flat, statics)
            return self.finished(op, flat, statics, kept)

    def keeps(self, op: Op, inputs: Any, statics: tuple[Any, ...]) -> bool:
        """Whether the results are kept: the policy says so in the first run, and is not asked again."""
        if not self.again:
            context = SelectiveCheckpointContext(is_recompute=False)
            found = self.policy(context, overload_of(op), *inputs, *statics) in KEPT
            self.decided.setdefault(op.name, []).append(found)
            return found
        index = self.calls[op.name] = self.calls.get(op.name, -1) + 1
        said = self.decided.get(op.name, [])
        return index < len(said) and said[index]

    def apply_inplace(self, op: Op, flat: tuple[Any, ...], statics: tuple[Any, ...]) -> Any:
        """In-place operators always run."""
        inputs = flat if op.sequence is None else (*flat[: op.sequence], flat[op.sequence :])
        with self.without():
            return call.apply_inplace(op, inputs, statics)

    def computed(self, op: Op, flat: tuple[Any, ...], statics: tuple[Any, ...]) -> Kept:
        """Run the forward of `op` and keep its results, unless this is the second run."""
        before = default_generator.state_words()
        outs, aux = compute(op, call.arrays_of(op, flat)[0], statics)
        after = default_generator.state_words()
        kept = Kept(outs, aux, None if (before == after).all() else after)
        if not self.again:
            self.kept.setdefault(op.name, []).append(kept)
        return kept

    def taken(self, op: Op) -> Kept | None:
        """The results of the same call in the first run."""
        index = self.at.get(op.name, 0)
        self.at[op.name] = index + 1
        calls = self.kept.get(op.name, [])
        if index >= len(calls):
            return None
        kept: Kept = calls[index]
        if kept is None:
            raise RuntimeError(
                "Trying to backward an extra time. You are only allowed to backward once on any region computed under "
                "selective activation checkpoint, unless the first backward has retain_graph=True."
            )
        for storage, version in zip(kept.storages, kept.versions, strict=True):
            if storage is not None and storage.version != version and not self.mutation:
                raise RuntimeError(
                    f"Tensor cached during selective activation checkpoint has been mutated: a result of {op.name}. Pass "
                    "allow_cache_entry_mutation=True if that is meant."
                )
        if kept.random is not None:
            default_generator.set_state_words(kept.random)
        if modes.run is not None and not modes.run.keep:
            calls[index] = None
        return kept

    def finished(self, op: Op, flat: tuple[Any, ...], statics: tuple[Any, ...], kept: Kept) -> Any:
        """The results as tensors, in the graph."""
        results = tuple(wrap(x) for x in kept.outs)
        if modes.grad and op.formulas:
            call.record(op, flat, statics, results, kept.aux)
        if not self.again:
            from rushlight.storage import storage_of

            kept.storages = [storage_of(t) for t in results]
            kept.versions = [s.version for s in kept.storages]
        return results[0] if op.out_count == 1 else results


def operator_of(x: Tensor) -> Op:
    """The operator that a list of a policy names: a declaration, a function published by one, or a name."""
    if hasattr(x, "overloads"):
        raise ValueError(f"Expected op in `op_list` to be an OpOverload but got: {x} of type {type(x)}. Please update the "
                         f"OpOverloadPacket to a specific OpOverload, as {x}.default")  # fmt: skip
    op = OPS.get(x) if isinstance(x, str) else getattr(x, "op", x)
    if not isinstance(op, Op):
        raise ValueError(
            f"Expected op in `op_list` to be an OpOverload but got: {x!r} of type {type(x)}. Give an operator, as "
            "torch.ops.aten.mm.default, or its name, as 'mm'."
        )
    return op


def create_selective_checkpoint_contexts(
    policy_fn_or_list: object, allow_cache_entry_mutation: bool = False
) -> tuple[Selecting, ...]:
    """The two contexts of a selectively checkpointed call, to be returned by `context_fn`.

    policy_fn_or_list: the operators whose results are kept, or `policy(ctx, op, *args)`, which returns a
    `CheckpointPolicy`; `op` is the operator as `torch.ops.aten.NAME.OVERLOAD` has it, and it is asked once for
    each call, in the first run, where `ctx.is_recompute` is False. Views are never kept, and operators in place
    always run again. A list with `mm` or `addmm` stands for `linear` too, which is an operator of its own here.

    >>> import functools
    >>> import rushlight as torch
    >>> from rushlight.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts
    >>> keep = functools.partial(create_selective_checkpoint_contexts, [torch.exp])
    >>> x = torch.ones(2, requires_grad=True)
    >>> checkpoint(lambda a: a.exp().sin(), x, use_reentrant=False, context_fn=keep).sum().backward()
    """
    if isinstance(policy_fn_or_list, (list, tuple, set, frozenset)):
        chosen = {operator_of(x) for x in policy_fn_or_list}
        if any(op.name in ("mm", "addmm") for op in chosen):
            chosen.add(OPS["linear"])  # in PyTorch a linear layer is one of those; here it is an operator of its own

        def policy(ctx: object, op: Overload, *args: object, **kwargs: object) -> CheckpointPolicy:
            return CheckpointPolicy.MUST_SAVE if op.op in chosen else CheckpointPolicy.PREFER_RECOMPUTE

    elif callable(policy_fn_or_list):
        policy = policy_fn_or_list
    else:
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    kept: dict[str, list[Any]] = {}
    decided: dict[str, list[bool]] = {}
    return (Selecting(policy, kept, decided, False, allow_cache_entry_mutation),
            Selecting(policy, kept, decided, True, allow_cache_entry_mutation))  # fmt: skip
