"""``torch.onnx.symbolic_opset9``: how ONNX orders what is padded."""

from __future__ import annotations

from collections.abc import Sequence

__all__: list[str] = []


def _prepare_onnx_paddings(dim: int, pad: Sequence[int]) -> list[int]:
    """What `nn.functional.pad` is given, the last dimension first, as all beginnings and then all ends from the first one on."""
    pairs = [*zip(pad[::2], pad[1::2], strict=True), *[(0, 0)] * (dim - len(pad) // 2)][::-1]
    return [*(begin for begin, _ in pairs), *(end for _, end in pairs)]
