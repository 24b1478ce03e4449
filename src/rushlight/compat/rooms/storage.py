"""``torch.storage``: the bytes of tensors."""

from rushlight.ops.create.memory import TypedStorage
from rushlight.storage import Storage as UntypedStorage

__all__ = ["TypedStorage", "UntypedStorage"]
