"""``torch._subclasses``: tensors that PyTorch's compiler traces with.  There are none here: nothing is traced."""

import contextlib
from collections.abc import Iterator

from rushlight import absent

__all__ = ["is_fake", "unset_fake_temporarily"]
absent.names(
    globals(),
    "nothing is compiled here; tensors on device='meta' have shapes without memory",
    "CrossRefFakeMode DataDependentOutputException DynamicOutputShapeException FakeTensor FakeTensorConverter FakeTensorMode "
    "MetadataMismatchError UnsupportedFakeTensorException",
)


def is_fake(x: object) -> bool:
    """Whether a tensor is such a one: no."""
    return False


@contextlib.contextmanager
def unset_fake_temporarily() -> Iterator[None]:
    """A context without the mode that makes such tensors: there is none to leave."""
    yield
