"""``torch._subclasses.schema_check_mode``: a mode that PyTorch checks declarations of operators with."""

from rushlight import absent

__all__: list[str] = []
absent.names(globals(), "torch.library.opcheck checks the declaration of an operator", "SchemaCheckMode")
