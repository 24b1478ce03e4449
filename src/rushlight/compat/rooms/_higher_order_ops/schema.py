"""``torch._higher_order_ops.schema``: what programs that are captured say of operators that take functions."""

from rushlight import absent

__all__: list[str] = []
absent.names(globals(), "nothing is captured here: programs run as they are", "HopArgumentInfo HopSchema HopSchemaGenerator")  # fmt: skip
