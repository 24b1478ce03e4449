"""`torch.ops.aten`: operators under the names, and with the arguments, of the interface below PyTorch's functions."""

from __future__ import annotations

import functools
import importlib
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

from rushlight.dispatch import call
from rushlight.dispatch.declare import OPS, Op
from rushlight.dispatch.registry import NAMESPACES
from rushlight.ops.python.kinds import OpOverload, OpOverloadPacket
from rushlight.overrides.protocol import ALL, asked, here, overriding
from rushlight.overrides.public import state
from rushlight.tensor import Tensor

# What computes an operator whose arguments are not those of a public function of its name; filled by `library.aten`.
MEANINGS: dict[str, Callable[..., Any] | None] = {}
SPACES = (("linalg_", "linalg"), ("special_", "special"), ("fft_", "fft"), ("", "nn.functional"))

# The names of PyTorch's overloads, of which each belongs to some operators.
OVERLOADS = frozenset(
    "IntList L List OutScalar_Other OutScalar_Self OutTensor Scalar ScalarOpt_dim ScalarOpt_dim_dtype ScalarOpt_dtype ScalarOther ScalarSelf "
    "Scalar_Other Scalar_Scalar Scalar_Self Scalar_Tensor Scalar_mode Tensor TensorList TensorList_bins Tensor_Scalar Tensor_Tensor "
    "Tensor_float Tensor_generator Tensor_hacked_twin Tensor_mode U a any array atol_rtol_float atol_rtol_tensor bin_ct bins_tensor "
    "bool center complex complex_complex correction data decimals default device dim dim_IntList dim_dtype dim_int dim_max dim_min "
    "dim_values dimname dims dtype dx eigenvalues eigvals float float_Tensor float_float from generator grad_input hacked_twin indexing "
    "indices input int int_Scalar int_Tensor int_bins int_float int_int inverse left_t list low low_dtype low_generator "
    "low_generator_dtype m memory_format mode n_scalar names no_stats ord_str other other_dtype other_scalar output p p_str padding "
    "padding_idx periodic prim_Device prim_dtype rcond_tensor reduce result scalar scalarint sections self self_Tensor self_int "
    "self_scalar sign size sizes source_Storage source_Tensor sparse_dim src stable start start_step static str t "
    "tensor_indices_or_sections tensorarray tensors to tol_tensor two using_ints value value_reduce values values_stable vec x x_scalar".split()
)


# What gives as many tensors as arguments say, by functions that are no declared operators.
SEVERAL = frozenset(
    "chunk split split_with_sizes unsafe_chunk unsafe_split unsafe_split_with_sizes tensor_split hsplit vsplit dsplit "
    "unbind meshgrid broadcast_tensors".split()
)


SHAPES_IN_PLACE = frozenset("as_strided_ detach_ resize_ squeeze_ swapaxes_ swapdims_ t_ transpose_ unsqueeze_".split())
DRAWN = frozenset(
    "bernoulli binomial cauchy dropout exponential geometric log_normal multinomial native_dropout normal poisson rand rand_like "
    "randint randint_like randn randn_like random randperm rrelu_with_noise uniform".split()
)
BY_DATA = frozenset("_unique2 argwhere bincount masked_select nonzero unique_consecutive unique_dim".split())
NUMBERS_OF_DATA = frozenset("_local_scalar_dense allclose equal item".split())


def check_overload(name: str, overload: str) -> None:
    """Raise AttributeError for what is no name of an overload."""
    if overload not in OVERLOADS and not overload.endswith("out"):
        raise AttributeError(f"The underlying op of 'aten.{name}' has no overload name '{overload}'")


class Handed(threading.local):
    """The calls that modes of this thread are handling, the innermost last: see `utils._python_dispatch`.

    formulas: within how many operators of gradients this thread is that are recorded as what they consist of: the gradients of
    that are those of formulas, since by operators of gradients they would be themselves again.
    """

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.formulas = 0


handed = Handed()


def over(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any] | None:
    """Whose ``__torch_function__`` is asked in place of a call, an empty list where modes alone are; None: nobody's."""
    found = overriding((*args, *kwargs.values())) if here.asks == ALL else []
    return found if found or (here.asks and here.modes) else None


class Overload(OpOverload):
    """One overload of an operator: a key of tables, and a function.  It is the same object wherever it is asked for.

    To a mode it stands for the call that the mode was handed, and runs that when it is given its arguments.
    """

    def __init__(self, packet: Packet, name: str):
        self.overloadpacket, self._overloadname = packet, name
        self.namespace, self._opname = packet._namespace, packet.__name__
        self.__name__, self.__module__ = f"{packet.__name__}.{name}", packet.__module__

    @property
    def op(self) -> Op | None:
        """The declaration that runs, None where several do."""
        return self.overloadpacket.op

    @property
    def is_view(self) -> bool:
        """Whether its results lie on the memory of its first argument."""
        op = self.op
        return bool(op is not None and op.view and not self._opname.endswith("_copy"))

    @functools.cached_property
    def tags(self) -> list[Any]:
        """Those marks of PyTorch's that tell what an operator does: whether it goes by elements, draws, works in place or into `out`,
        copies what others view, or has results whose shape or number data decide.
        """
        op, name = self.op, self._opname
        marks = {"pointwise": op is not None and op.elementwise and not op.view, "inplace_view": name in SHAPES_IN_PLACE,
                 "view_copy": name.endswith("_copy") and name != "_to_copy", "nondeterministic_seeded": name.rstrip("_") in DRAWN,
                 "dynamic_output_shape": name in BY_DATA, "data_dependent_output": name in NUMBERS_OF_DATA,
                 "inplace": name.endswith("_") and not name.endswith("__"), "out": self._overloadname.endswith("out")}  # fmt: skip
        tags = importlib.import_module("rushlight.library.tags").Tag
        return [tags[mark] for mark, holds in marks.items() if holds]

    def has_kernel_for_dispatch_key(self, key: object) -> bool:
        """Whether something computes it on the CPU, which alone computes here."""
        return (
            str(key).rpartition(".")[2] in ("CPU", "CompositeExplicitAutograd")
            and self.overloadpacket.function is not None
        )

    def decompose(self, *args: Any, **kwargs: Any) -> Any:
        """NotImplemented: what it consists of is not taken apart."""
        return NotImplemented

    def name(self) -> str:
        """The name with its namespace."""
        return f"{self.namespace}::{self._opname}" + (
            f".{self._overloadname}" if self._overloadname != "default" else ""
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if handed.calls:
            operands = handed.calls[-1].operands(self, args, kwargs)
            if operands is not None:
                return self.overloadpacket.listed(handed.calls[-1].run(operands))
        if state["armed"] and (found := over(args, kwargs)) is not None:
            return asked(self, str(self), args, kwargs, found)
        return self.overloadpacket.run(args, kwargs)


class Packet(OpOverloadPacket):
    """The overloads of one name: ``torch.ops.aten.add``; called, it looks at its arguments, as the public functions do."""

    def __init__(self, name: str, namespace: str = "aten"):
        super().__init__(name, namespace)

    @property
    def op(self) -> Op | None:
        """The declaration that runs, None where several do."""
        return declaration(self.__name__)

    @property
    def function(self) -> Callable[..., Any] | None:
        """What it computes."""
        return function(self.__name__) if self._namespace == "aten" else own_function(self.__name__)

    def __getattr__(self, overload: str) -> Overload:
        if overload.startswith("__"):  # which `copy` and `pickle` ask for of an object without a name yet
            raise AttributeError(overload)
        check_overload(self.__name__, overload)
        found = vars(self)[overload] = Overload(self, overload)
        return found

    def __reduce__(self) -> tuple[Any, ...]:  # copies of operators are the operators
        return packet if self._namespace == "aten" else own_packet, (self.__name__,)

    def overloads(self) -> list[str]:
        """The names of the overloads, as far as they are told apart."""
        if self.__name__.startswith("_foreach_"):
            return lists().overloads(self.__name__)
        known = [each.partition(".") for op in OPS.values() for each in overloads(op)]
        found = [overload or "default" for name, _, overload in known if name == self.__name__]
        return list(dict.fromkeys(found)) or ["default"]

    def name(self) -> str:
        """The name with its namespace."""
        return self._qualified_op_name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if state["armed"] and (found := over(args, kwargs)) is not None:
            return asked(self, str(self), args, kwargs, found)
        return self.run(args, kwargs)

    def run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What the function of the name gives, where nothing overrides it."""
        run = self.function
        if run is None:
            raise NotImplementedError(
                f"torch.ops.{self._namespace}.{self.__name__} is known by name alone here: nothing computes it"
            )
        if "self" in kwargs:  # which public functions call input
            args = (kwargs.pop("self"), *args)
        if kwargs.get("out") is not None and not takes_out(run):  # operators have it whose public functions have not
            return call.write_out(self.__name__, kwargs.pop("out"), run(*args, **kwargs), same=True)
        return self.listed(run(*args, **kwargs))

    def listed(self, found: Any) -> Any:
        """What an operator gives, as this interface has it: as many tensors as arguments say are in a list."""
        return list(found) if type(found) is tuple and self.several else found

    @functools.cached_property
    def several(self) -> bool:
        """Whether arguments say how many results there are."""
        op = self.op
        return self.__name__ in SEVERAL or (op is not None and op.out_count is None)


def takes_out(fn: Callable[..., Any]) -> bool:
    """Whether a function has the keyword `out`."""
    op = getattr(fn, "op", None)
    return op.takes_out if op is not None else hasattr(fn, "without_out") or "out" in fn.__code__.co_varnames


def declaration(name: str) -> Op | None:
    """The operator that goes by a name of this interface."""
    return OPS.get(name) or next((op for op in OPS.values() if name in names(op)), None)


def names(op: Op) -> list[str]:
    """What an operator is called here, without overloads."""
    return [word.partition(".")[0] for word in overloads(op)]


def overloads(op: Op) -> list[str]:
    """What its declaration says that it is called, without arguments."""
    return [line.partition("(")[0] for line in op.aten]


def function(name: str) -> Callable[..., Any] | None:
    """What computes an operator, None where nothing does."""
    return MEANINGS[name] if name in MEANINGS else public(name)


def lists() -> ModuleType:
    """The functions of lists of tensors, which are made when they are first asked for."""
    return importlib.import_module("rushlight.ops.python.foreach")


def public(name: str) -> Callable[..., Any] | None:
    """The function or method of that name."""
    if name.startswith("_foreach_"):
        return vars(lists()).get(name)
    for fn in (NAMESPACES[""].get(name), getattr(Tensor, name, None)):
        if callable(fn) and not isinstance(fn, type) and not name.startswith("__"):
            return fn
    for start, space in SPACES:
        if name.startswith(start) and name.removeprefix(start) in NAMESPACES[space]:
            return NAMESPACES[space][name.removeprefix(start)]
    return None


def own_function(name: str) -> Callable[..., Any] | None:
    """What an operator of rushlight's own computes, from all of its arguments; None where there is none."""
    op = OPS.get(name) or OPS.get(name.removesuffix("_"))
    if op is None:
        return None
    run = call.apply if op.name == name else call.apply_inplace
    return lambda *args, **kwargs: run(op, *op.bind(args, kwargs))


packets: dict[str, Packet] = {}
own: dict[str, Packet] = {}  # of the namespace `rushlight`


def packet(name: str) -> Packet:
    """The operator of a name.  Raises AttributeError where nothing is known by it."""
    found = packets.get(name)
    if found is None:
        if not (name in MEANINGS or function(name) or declaration(name) or declaration(name.removesuffix("_"))):
            raise AttributeError(f"'_OpNamespace' 'aten' object has no attribute {name!r}")
        found = packets[name] = Packet(name)
    return found


def own_packet(name: str) -> Packet:
    """An operator that PyTorch has not."""
    return own.setdefault(name, Packet(name, "rushlight"))


def overload_of(op: Op, inplace: bool = False) -> Overload:
    """The overload by which policies and modes know an operator; those that PyTorch has not are of the namespace `rushlight`."""
    name, _, overload = overloads(op)[0].partition(".") if op.aten else ("", "", "")
    end = "_" * inplace
    if not name:
        name = next((word for word in (op.name, op.shown) if public(word + end) or public(word)), "")
    if not name:
        return own_packet(op.name + end).default
    return getattr(packet(name + end), overload or "default")
