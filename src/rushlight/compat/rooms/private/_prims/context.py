"""``torch._prims.context``: a mode in which functions of torch are those of `torch._refs`, which they are here anyhow."""

from rushlight.overrides.modes import BaseTorchFunctionMode

__all__ = ["TorchRefsMode"]


class TorchRefsMode(BaseTorchFunctionMode):
    """A mode that changes nothing."""

    def __init__(self, strict: bool = False, should_fallback_fn: object = None, prims_mode_cls: object = None) -> None:
        super().__init__()
