"""``torch.backends.quantized``: engines of quantized operators, of which there is none."""

from rushlight.compat.backends import _settings

__all__ = ["engine", "supported_engines"]

engine: str
supported_engines: list[str]


def _set_engine(module: object, given: str) -> None:
    if given not in ("none", "fbgemm", "qnnpack", "onednn", "x86"):
        raise RuntimeError(f"{given} is not a valid value for quantized engine")
    if given != "none":
        raise RuntimeError(f"quantized engine {given.upper()} is not supported")


def _fixed(module: object, given: object) -> None:
    raise RuntimeError("Assignment not supported")


_settings.with_settings(
    __name__,
    engine=property(lambda module: "none", _set_engine),
    supported_engines=property(lambda module: ["none"], _fixed),
)
