"""``torch.version`` where ``torch`` is rushlight: the version that scripts see, and that nothing of CUDA is there."""

from rushlight.compat.torch_version import PYTORCH

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "rocm", "xpu"]

__version__ = PYTORCH[:]  # a plain string, as in PyTorch
cuda: str | None = None
hip: str | None = None
rocm: str | None = None
xpu: str | None = None
debug: bool = False
git_version: str = "unknown"
