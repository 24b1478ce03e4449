"""``torch._functorch.batch_norm_replacement``: batch norms without running statistics."""

from rushlight.func import replace_all_batch_norm_modules_

__all__ = ["replace_all_batch_norm_modules_"]
