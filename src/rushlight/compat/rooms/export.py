"""``torch.export``: programs are not captured here.  Its names can be imported and annotated with; using them is refused."""

from __future__ import annotations

import enum

from rushlight import absent

_WHY = (
    "rushlight captures no programs: keep the model in Python and save its state_dict; torch.fx.symbolic_trace records "
    "what a module calls"
)
__all__ = ["Dim", "dims"]
absent.names(
        globals(), _WHY,
        "AdditionalInputs Constraint CustomDecompTable ExportBackwardSignature ExportGraphSignature ExportedProgram "
        "FlatArgsAdapter ModuleCallEntry ModuleCallSignature ShapesCollection UnflattenedModule",
        "default_decompositions draft_export export export_for_training load register_dataclass save unflatten",
    )  # fmt: skip


class Dim:
    """The name of a size that a captured program leaves open, with its bounds.

    >>> import rushlight as torch
    >>> torch.export.Dim("batch", min=1, max=64)
    Dim('batch', min=1, max=64)
    """

    class _Hint(enum.Enum):
        AUTO = 1
        DYNAMIC = 2
        STATIC = 3

    AUTO, DYNAMIC, STATIC = _Hint.AUTO, _Hint.DYNAMIC, _Hint.STATIC

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None) -> None:
        low, high = 0 if min is None else min, max
        if high is not None and high <= low:
            raise AssertionError(f"Cannot create Dim with inconsistent min={min}, max={max}")
        if not name.isidentifier():
            raise AssertionError(f"Dim name must be a valid identifier, got {name}")
        self.__name__, self.min, self.max = name, low, high

    def __repr__(self) -> str:
        bounds = f", min={self.min}" * (self.min != 0) + f", max={self.max}" * (self.max is not None)
        return f"Dim({self.__name__!r}{bounds})"


def dims(*names: str, min: int | None = None, max: int | None = None) -> tuple[Dim, ...]:
    """A Dim for each name."""
    return tuple(Dim(name, min=min, max=max) for name in names)
