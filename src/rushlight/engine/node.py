"""Nodes of the graph, their ports, and what only unusual nodes carry."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, final

from rushlight.basics.devices import CPU
from rushlight.basics.handles import Hooks, RemovableHandle
from rushlight.engine.accumulate import accumulate_tensor, node_hooks
from rushlight.tensor import LEAF, Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from rushlight.basics import devices, dtypes
    from rushlight.basics.arrays import Array
    from rushlight.basics.size import Size

# Where a gradient goes; None in its place where none flows.
Edge: TypeAlias = "Node | Port | Tensor"

next_seq = itertools.count().__next__
EVERY = -1  # the mask of wanted edges that wants all


class Extra:
    """Hooks and notes of a node that has any."""

    __slots__ = ("metadata", "post_hooks", "pre_hooks", "retained", "tensor_hooks", "traceback")

    def __init__(self) -> None:
        self.pre_hooks: Hooks | None = None
        self.post_hooks: Hooks | None = None
        self.tensor_hooks: dict[int, Hooks] = {}  # by output number
        self.retained: dict[int, Any] = {}  # by output number: weak reference to the tensor that wants its grad
        self.metadata: dict[Any, Any] = {}
        self.traceback: Any = None  # where the operator was called, under anomaly mode


class Node:
    """One recorded operation: turns gradients of its outputs into gradients of its inputs.

    edges: for each input, where its gradient goes: None, a leaf tensor, a node (its only output), or a port.
    shape, dtype: of the output; of several outputs, lists of them.
    """

    __slots__ = ("__weakref__", "dtype", "edges", "extra", "seq", "shape")
    dtype: Any
    edges: Any
    extra: Any
    seq: int
    shape: Any
    count = 1  # outputs
    plan: Any = None  # of a declared operator's node: `plan.full` is its `run` for every input
    nr = 0
    runs_without_grad = False  # whether it runs even when no gradient arrived
    severed = False  # whether it stands for a history that is not there
    steady_out = False  # whether its gradient stays what it is where its result is changed afterwards: `keep_result` sees to that
    leaf_like = False  # whether its output is a leaf to the user: the input of a function transformation

    @property
    def node(self) -> Node:
        """The node of this edge."""
        return self

    def keep_result(self, result: Tensor) -> None:
        """The result is about to change: keep what the gradient asks of it as it is."""

    def watch_result(self, result: Tensor) -> None:
        """The memory of the result is about to be shown outside of the graph: have `keep_result` run before it changes there."""

    def run(self, g: Any, wanted: int) -> Sequence[Any]:
        """Gradients of the inputs as arrays, one per edge or None; `g` an array, or a list for several outputs."""
        raise NotImplementedError

    def run_tensors(self, g: Any, wanted: int) -> Sequence[Any]:
        """As `run`, on tensors, recording a graph."""
        raise NotImplementedError

    def release(self) -> None:
        """Drop what was saved."""

    def input_places(self) -> tuple[int, ...] | None:
        """The inputs that those outside see, where not all are: without those that can never have a gradient."""
        return None

    def shown(self, values: Sequence[Any]) -> list[Any]:
        """Of values for each input, those of the inputs that are seen outside."""
        places = self.input_places()
        return list(values) if places is None else [values[i] for i in places]

    def name(self) -> str:
        """The name of the operation, as PyTorch spells it."""
        return type(self).__name__

    def extras(self) -> Extra:
        """This node's extra part, made now if there was none."""
        if self.extra is None:
            self.extra = Extra()
        return self.extra  # type: ignore[no-any-return]

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dictionary for the user's notes."""
        return self.extras().metadata

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """The nodes that the inputs came from, each with the number of the output there."""
        return tuple(as_function(edge) for edge in self.shown(self.edges))

    def register_prehook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(grad_outputs)` before this node runs; what it returns, unless None, replaces them."""
        extra = self.extras()
        if extra.pre_hooks is None:
            extra.pre_hooks = Hooks()
        return extra.pre_hooks.add(hook)

    def register_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(grad_inputs, grad_outputs)` after this node ran; what it returns, unless None, replaces the
        gradients of the inputs."""
        extra = self.extras()
        if extra.post_hooks is None:
            extra.post_hooks = Hooks()
        return extra.post_hooks.add(hook)

    requires_grad = True

    @property
    def _input_metadata(self) -> tuple[Metadata, ...]:
        """Shape and dtype of each gradient that this node takes."""
        if self.count == 1:
            return (Metadata(self.shape, self.dtype),)
        return tuple(Metadata(shape, dtype) for shape, dtype in zip(self.shape, self.dtype, strict=True))

    def _register_hook_dict(self, tensor: Tensor) -> None:
        """Run the hooks in the dictionary `tensor._backward_hooks` on the gradient of that output."""
        self.extras().tensor_hooks[tensor.output_nr] = tensor._backward_hooks

    def _sequence_nr(self) -> int:
        return int(self.seq)

    def _set_sequence_nr(self, number: int) -> None:
        self.seq = number

    def __call__(self, *grads: object) -> Any:
        """The gradients of the inputs for these of the outputs, recorded where grad mode says so.

        One gradient, or a tuple of several. Raises TypeError unless there is one (or None) for each output.
        """
        if len(grads) != self.count:
            raise TypeError(f"{self.name()} expected {self.count} arguments, got {len(grads)} instead: one gradient, or None, "
                            "for each of its outputs")  # fmt: skip
        if not self.runs_without_grad and all(g is None for g in grads):
            found: Sequence[Any] = [None] * len(self.edges)
        else:
            found = self.run_tensors(grads[0] if self.count == 1 else list(grads), EVERY)
        found = self.shown(found)
        return found[0] if len(found) == 1 else tuple(found)

    def __dir__(self) -> list[str]:
        return [n for n in NAMES if hasattr(type(self), n)] + [n for n in super().__dir__() if n.startswith("__")]

    def __repr__(self) -> str:
        return f"<{type(self).__name__} object at {id(self):#x}>"


NAMES = ("_input_metadata", "_register_hook_dict", "_sequence_nr", "metadata", "name", "next_functions", "register_hook",
         "register_prehook", "requires_grad", "variable")  # fmt: skip


class Metadata:
    """What a node knows of one gradient that it takes."""

    is_nested_tensor = is_cpp_nested_tensor = is_tensor_subclass = False

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any]):
        self._shape, self._dtype = shape, dtype

    @property
    def shape(self) -> Size:
        """Sizes of the dimensions."""
        from rushlight.basics.size import Size

        return Size(self._shape)

    @property
    def dtype(self) -> dtypes.dtype:
        """Type of the elements."""
        from rushlight.basics import dtypes

        return dtypes.of(self._dtype)

    @property
    def device(self) -> devices.device:
        """Where it is."""
        return CPU


@final
class Port:
    """One output of a node that has several."""

    __slots__ = ("node", "nr")

    def __init__(self, node: Node, nr: int):
        self.node, self.nr = node, nr

    @property
    def shape(self) -> tuple[int, ...]:
        found: tuple[int, ...] = self.node.shape[self.nr]
        return found

    @property
    def dtype(self) -> np.dtype[Any]:
        found: np.dtype[Any] = self.node.dtype[self.nr]
        return found


class AccumulateGrad(Node):
    """What a leaf looks like in the graph: adds gradients to `variable.grad`.

    The engine works on the leaf itself; this node is made when somebody asks for it, and its hooks live on the leaf.
    """

    __slots__ = ("variable",)

    def __init__(self, variable: Tensor):
        self.variable, self.edges, self.extra, self.seq = variable, (), None, (1 << 64) - 1
        self.shape, self.dtype = variable._array.shape, variable._array.dtype

    def name(self) -> str:
        """The name, with PyTorch's prefix."""
        return "torch::autograd::AccumulateGrad"

    def run_tensors(self, g: Tensor, wanted: int) -> Sequence[Any]:
        accumulate_tensor(self.variable, g, False)
        return []

    def register_prehook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(grad_outputs)` before the gradient is accumulated, after the hooks of the tensor."""
        return node_hooks(self.variable).pre.add(hook)

    def register_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(grad_inputs, grad_outputs)` after the gradient was accumulated; grad_inputs is empty."""
        return node_hooks(self.variable).post.add(hook)


def accumulator(leaf: Tensor) -> AccumulateGrad:
    """The AccumulateGrad node of a leaf: the same object as long as anybody holds it."""
    node = None if leaf._accumulator is None else leaf._accumulator()
    if node is None:
        import weakref

        node = AccumulateGrad(leaf)
        leaf._accumulator = weakref.ref(node)
    return node


class Error(Node):
    """The node behind what cannot be differentiated: a gradient that comes to it raises an error of a class and a text."""

    __slots__ = ("kind", "why")

    def __init__(self, edges: tuple[Any, ...], array: Array, kind: type[Exception], why: str):
        self.edges, self.extra, self.seq, self.kind, self.why = edges, None, next_seq(), kind, why
        self.shape, self.dtype = array.shape, array.dtype

    def name(self) -> str:
        """The name, with PyTorch's prefix."""
        return "torch::autograd::Error"

    def run(self, g: object, wanted: int) -> NoReturn:
        raise self.kind(self.why)

    run_tensors = run


class Severed(Node):
    """The history of a view that requires grad although no operator of it was recorded: gradients go nowhere.

    It was made in no_grad mode.
    """

    __slots__ = ()
    severed = True

    def __init__(self, array: Array):
        self.edges, self.extra, self.seq = (), None, next_seq()
        self.shape, self.dtype = array.shape, array.dtype

    def run(self, g: object, wanted: int) -> list[Any]:
        return []

    run_tensors = run


class Lost(Severed):
    """The history of a view whose base has none, after a change: gradients come as far as the view, and can be asked for."""

    __slots__ = ()


def as_function(edge: Node | Tensor | None) -> tuple[Any, int]:
    """An edge as PyTorch shows it: (node, output number), (None, 0) where no gradient flows."""
    if edge is None or isinstance(edge, Severed):
        return None, 0
    if isinstance(edge, Tensor):
        return accumulator(edge), 0
    return edge.node, edge.nr


def edge_or_refusal(tensor: Tensor) -> Any:
    """As `edge_of`; of a view that has no history any more the error that says so, for where the history is asked for."""
    try:
        return edge_of(tensor)
    except RuntimeError as error:
        return error.with_traceback(None)


def edge_of(tensor: Tensor) -> Any:
    """Where gradients of `tensor` go: None, itself if it is a leaf, a node or a port."""
    info, edge = tensor._view, tensor._edge
    if info is not None:
        base = info.base._edge
        if (edge is None or edge is LEAF) and base is None:
            return None if edge is None else tensor
        if info.version != tensor._storage.version:
            Tensor._refresh(tensor)
            edge = tensor._edge
        if edge is None and tensor.requires_grad:
            return Severed(tensor._held)
    return tensor if edge is LEAF else edge
