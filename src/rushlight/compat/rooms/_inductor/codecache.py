"""``torch._inductor.codecache``: what PyTorch's compiler has compiled.  Nothing is compiled here."""

from __future__ import annotations

from typing import NoReturn

from rushlight import absent
from rushlight.compat.rooms._inductor.exc import InvalidCxxCompiler

__all__ = ["CppCodeCache"]


class CppCodeCache:
    """Programs in C++, compiled."""

    @classmethod
    def load(cls, source_code: str, *args: object, **kwargs: object) -> NoReturn:
        """Raises InvalidCxxCompiler, by which tests know that there is no compiler."""
        raise InvalidCxxCompiler("torch._inductor compiles nothing here")


absent.names(globals(), "nothing is compiled here", "CUDACodeCache FxGraphCache PyCodeCache")
