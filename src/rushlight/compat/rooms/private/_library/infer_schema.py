"""``torch._library.infer_schema``: declarations of operators from annotations."""

from rushlight.library.schema import infer_schema

__all__ = ["infer_schema"]
