"""``torch.cuda.amp``: the older names of `rushlight.amp`, for CUDA alone."""

from typing import Any

from rushlight import amp

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]


def custom_fwd(fwd: Any = None, *, cast_inputs: Any = None) -> Any:
    """``torch.amp.custom_fwd`` for CUDA devices."""
    return amp.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd: object = None) -> Any:
    """``torch.amp.custom_bwd`` for CUDA devices."""
    return amp.custom_bwd(bwd, device_type="cuda")


class autocast(amp.autocast):
    """``torch.autocast("cuda")``."""

    def __init__(self, enabled: bool = True, dtype: Any = None, cache_enabled: bool = True) -> None:
        super().__init__("cuda", dtype, enabled, cache_enabled)


class GradScaler(amp.GradScaler):
    """``torch.amp.GradScaler("cuda")``."""

    def __init__(
        self,
        init_scale: float = 65536.0,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled)
