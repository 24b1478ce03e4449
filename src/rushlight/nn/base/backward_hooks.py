"""Full backward hooks: identity nodes around a module's forward tell when its gradients are known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from rushlight.autograd import Function
from rushlight.basics import caller
from rushlight.basics.state import modes
from rushlight.dispatch.plan import OpNode
from rushlight.tensor import Tensor

# Where tensors are in a tuple, each with a nested tensor of its places, or None for one that is not nested.
Places: TypeAlias = dict[int, Any]


class BackwardHookFunction(Function):
    """The identity on several tensors at once, as one node."""

    @staticmethod
    def forward(ctx: Any, *tensors: Tensor) -> tuple[Tensor, ...]:
        outputs = tuple(t.view_as(t) for t in tensors)
        ctx.mark_non_differentiable(*(o for o, t in zip(outputs, tensors) if not t.requires_grad))
        return outputs

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, ...]:
        return grads


class BackwardHook:
    """The backward hooks of one call of a module.

    `module` is called back with the gradients of the tensors among its positional arguments (None for those that
    need none) and of its outputs.  The object lives in hooks on the two identity nodes and holds neither node.
    """

    def __init__(self, module: Any, user_hooks: list[Any], user_pre_hooks: list[Any]):
        self.module, self.user_hooks, self.user_pre_hooks = module, user_hooks, user_pre_hooks
        self.grad_outputs: Any = None
        self.input_places: Places | None = None  # where tensors are among the arguments
        self.n_inputs = -1
        self.output_places: Places = {}
        self.n_outputs = -1

    def on_inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Pass the tensors among the arguments through a node whose end runs the hooks."""
        args, node, places = _through_node(args)
        self.n_inputs = len(args)
        if node is not None:
            self.input_places = places
            node.register_hook(self._inputs_done)
        return args

    def on_outputs(self, result: Tensor) -> Tensor:
        """Pass the outputs through a node that notes their gradients."""
        is_tensor = isinstance(result, Tensor)
        if not is_tensor and not isinstance(result, tuple):
            caller.warn(
                "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors but received "
                f"{type(result)}"
            )
            return result
        outputs, node, places = _through_node((result,) if is_tensor else result)
        if node is not None:
            self.n_outputs, self.output_places = len(outputs), places
            node.register_hook(self._outputs_known)
        if is_tensor:
            return outputs[0]
        return type(result)(*outputs) if hasattr(result, "_fields") else outputs

    def _outputs_known(self, _: tuple[Tensor, ...], grads: tuple[Any, ...]) -> tuple[Tensor, ...] | None:
        """The gradients of the outputs have passed: run pre-hooks; without inputs, the hooks too."""
        grad_outputs = _spread(grads, self.output_places, self.n_outputs)
        replaced = self._run_pre_hooks(grad_outputs)
        self.grad_outputs = replaced
        if self.input_places is None:
            self._run_without_inputs()
        if replaced is not grad_outputs:
            return tuple(_in_graph(replaced[i]) for i in self.output_places)
        return None

    def _run_pre_hooks(self, grad_outputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        for hook in self.user_pre_hooks:
            result = hook(self.module, grad_outputs)
            if result is not None:
                grad_outputs = _as_many(result, self.n_outputs, "Backward pre hook", "grad_output")
        return grad_outputs

    def _run_without_inputs(self) -> None:
        grad_outputs, self.grad_outputs = self.grad_outputs, None
        if not self.user_hooks:
            return
        caller.warn(
            "Full backward hook is firing when gradients are computed with respect to module outputs since no inputs "
            "require gradients."
        )
        for hook in self.user_hooks:
            result = hook(self.module, (None,) * self.n_inputs, grad_outputs)
            if result is not None and not (isinstance(result, tuple) and all(g is None for g in result)):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always return None or None for all "
                    f"gradients: there is nothing to replace, but it returned {type(result).__name__}"
                )

    def _inputs_done(self, grad_inputs: tuple[Any, ...], _: tuple[Tensor, ...]) -> tuple[Tensor, ...] | None:
        """The gradients of the inputs are known: run the hooks, which may replace them."""
        places = self.input_places or {}
        spread = _spread(grad_inputs, places, self.n_inputs)
        grad_outputs, self.grad_outputs = self.grad_outputs, None
        if grad_outputs is None:
            return None  # it came past the outputs: the graph of a first gradient is differentiated again
        changed = False
        for hook in self.user_hooks:
            result = hook(self.module, spread, grad_outputs)
            if result is not None:
                spread, changed = _as_many(result, self.n_inputs, "Backward hook", "grad_input"), True
        return tuple(_in_graph(spread[i]) for i in places) if changed else None


def _in_graph(value: Any) -> Any:
    """What of a tensor is in the graph: of a nested one, its values."""
    return value._values if value is not None and value.is_nested else value


def _through_node(values: tuple[Any, ...]) -> tuple[tuple[Any, ...], Any, Places]:
    """Pass the tensors among `values` through one identity node: the new values, the node, and their places."""
    given: Places = {i: value for i, value in enumerate(values) if isinstance(value, Tensor)}
    tensors = [_in_graph(value) for value in given.values()]
    if not modes.grad or not any(t.requires_grad for t in tensors):
        return values, None, {}
    passed = BackwardHookFunction.apply(*tensors)
    node = next(t.grad_fn for t in passed if t.requires_grad)
    places: Places = {i: value._without_values() if value.is_nested else None for i, value in given.items()}
    new = list(values)
    for (place, like), tensor in zip(places.items(), passed, strict=True):
        new[place] = tensor if like is None else like._with(tensor)
    return tuple(new), node, places


def _spread(values: Any, places: Places, size: int) -> tuple[Any, ...]:
    """A tuple of `size` with `values` at `places` and None elsewhere."""
    spread = [None] * size
    for (place, like), value in zip(places.items(), values, strict=True):
        spread[place] = value if like is None or value is None else like._with(value)
    return tuple(spread)


def _as_many(result: tuple[Tensor, ...], size: int, what: str, of: str) -> tuple[Any, ...]:
    given = tuple(result) if isinstance(result, (tuple, list)) else (result,)
    if len(given) != size:
        raise RuntimeError(f"{what} returned an invalid number of {of}, got {len(given)}, but expected {size}")
    for value in given:
        if value is not None and not isinstance(value, Tensor):
            raise TypeError(f"{what} must return tensors or None for {of}, got {type(value).__name__}")
    return given


FULL = "Use register_full_backward_hook, which is given all of them."


def warn_of_legacy(args: tuple[Tensor | list[Tensor], ...], result: Any, node: OpNode) -> None:
    """Warn where hooks of `register_backward_hook` do not see all gradients of a module, `node` being what they are on."""
    message = _missing_by_kind(args, result) or _missing_by_nodes(args, result, node)
    if message:
        caller.warn(f"{message}. {FULL}", FutureWarning)


def _missing_by_kind(args: tuple[Tensor | list[Tensor], ...], result: object) -> str:
    if not _are_tensors(result):
        return ("Using non-full backward hooks on a Module that does not return a single Tensor or a tuple of Tensors is "
                "deprecated: they miss some of grad_output")  # fmt: skip
    if not _are_tensors(args):
        return ("Using non-full backward hooks on a Module that does not take as input a single Tensor or a tuple of "
                "Tensors is deprecated: they miss some of grad_input")  # fmt: skip
    return ""


def _are_tensors(x: object) -> bool:
    return isinstance(x, Tensor) or (isinstance(x, tuple) and all(isinstance(t, Tensor) for t in x))


def _missing_by_nodes(args: Sequence[Any], result: Tensor | tuple[Tensor, ...], node: OpNode) -> str:
    results = (result,) if isinstance(result, Tensor) else result
    if len({t.grad_fn for t in results} - {None}) > 1:
        return ("Using a non-full backward hook when outputs are generated by different autograd Nodes is deprecated: it "
                "misses some grad_output")  # fmt: skip
    if {t.grad_fn for t in args} - {None} != {fn for fn, _ in node.next_functions}:
        return ("Using a non-full backward hook when the forward contains multiple autograd Nodes is deprecated: it misses "
                "some grad_input")  # fmt: skip
    return ""
