"""``torch.ao.nn.quantizable.modules``: no layers."""

__all__: list[str] = []
