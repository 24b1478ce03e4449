"""`torch.ops.aten`: operators under the names by which selective checkpointing and other policies know them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight.dispatch.declare import OPS

if TYPE_CHECKING:
    from rushlight.dispatch.declare import Op
    from rushlight.tensor import Tensor

# The names of PyTorch's overloads, of which each belongs to some operators.
OVERLOADS = frozenset(
    "L OutScalar_Other OutScalar_Self OutTensor Scalar ScalarOpt_dim ScalarOpt_dim_dtype ScalarOpt_dtype ScalarOther ScalarSelf Scalar_Other "
    "Scalar_Scalar Scalar_Self Scalar_Tensor Scalar_mode Tensor Tensor_Scalar Tensor_Tensor Tensor_float Tensor_generator Tensor_mode any bool "
    "center complex correction data decimals default device dim dim_IntList dim_int dim_max dim_min dim_values dims dtype float float_Tensor "
    "generator grad_input indexing indices input int int_Scalar int_Tensor int_int inverse low low_dtype low_generator memory_format mode "
    "no_stats other other_dtype other_scalar p padding periodic prim_Device prim_dtype reduce result sections self self_Tensor self_int "
    "self_scalar sign size sizes source_Storage source_Tensor src stable start start_step static str t tensor_indices_or_sections tensors two "
    "value value_reduce values values_stable vec x_scalar output".split()
)


def check_overload(name: str, overload: str) -> None:
    """Raise AttributeError for what is no name of an overload."""
    if overload not in OVERLOADS and not overload.endswith("out"):
        raise AttributeError(f"The underlying op of 'aten.{name}' has no overload name '{overload}'")


class Overloads:
    """An operator by name; every overload of it is the operator itself."""

    def __init__(self, name: str, shown: str = ""):
        self.name, self.op, self.__name__ = name, OPS[name], shown or name

    def __getattr__(self, overload: str) -> Op:
        check_overload(self.name, overload)
        return self.op

    def overloads(self) -> list[str]:
        """The names of the overloads."""
        return ["default"]

    def __call__(self, *args: object, **kwargs: object) -> Tensor:
        return self.op.call(*args, **kwargs)

    def __str__(self) -> str:
        return f"aten.{self.__name__}"

    def __repr__(self) -> str:
        return f"<operator {self.name}>"


def __getattr__(name: str) -> Overloads:
    known = name if name in OPS else next((op.name for op in OPS.values() if name in op.aten), None)
    if known is None:
        raise AttributeError(f"'_OpNamespace' 'aten' object has no attribute {name!r}")
    return Overloads(known, name)
