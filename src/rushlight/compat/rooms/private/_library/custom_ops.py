"""``torch._library.custom_ops``: operators from Python functions."""

from rushlight.library.custom import CustomOpDef, custom_op

__all__ = ["CustomOpDef", "custom_op"]
