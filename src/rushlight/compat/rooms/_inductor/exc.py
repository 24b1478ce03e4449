"""``torch._inductor.exc``: errors of PyTorch's compiler."""

__all__ = ["CppCompileError", "InvalidCxxCompiler"]


class InvalidCxxCompiler(RuntimeError):
    """There is no compiler of C++."""


class CppCompileError(RuntimeError):
    """A compiler of C++ refused a program."""
