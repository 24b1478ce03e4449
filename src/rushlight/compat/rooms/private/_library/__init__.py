"""``torch._library``: what operators of packages are made of, as `torch.library` has it."""

from rushlight.compat.rooms.private._library import custom_ops, infer_schema, utils

__all__ = ["custom_ops", "infer_schema", "utils"]
