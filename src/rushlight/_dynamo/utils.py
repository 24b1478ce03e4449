"""What libraries ask of `torch._dynamo.utils`."""

__all__ = ["is_compile_supported"]


def is_compile_supported(device_type: str) -> bool:
    """Whether programs can be compiled for a device: no."""
    return False
