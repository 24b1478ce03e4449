"""The version of rushlight, and the fields of ``torch.version`` that scripts ask for."""

__all__ = ["__version__", "cuda", "debug", "hip"]

__version__ = "0.1.0"
cuda: str | None = None
hip: str | None = None
debug: bool = False
