"""Products with weights of 8 and of 4 bits that have a scale for each row or group, as quantized layers of libraries use them."""

from __future__ import annotations

from rushlight.basics import dtypes
from rushlight.dispatch.named import named
from rushlight.tensor import Tensor

_GROUPS = (32, 64, 128, 256)
_KINDS = (dtypes.float32, dtypes.bfloat16, dtypes.float16)


def _check(holds: object, message: str) -> None:
    if not holds:
        raise RuntimeError(message)


def _weight_int8pack_mm(self: Tensor, mat2: Tensor, scales: Tensor) -> object:
    """x @ w.T of a weight of int8, times the scale of each row of it; computed in float32.  (M, K), (N, K), (N) -> (M, N)

    Raises RuntimeError for other dtypes and shapes.
    """
    name = "_weight_int8pack_mm: expect"
    _check(self.dim() == 2 and self.dtype in _KINDS, f"{name} A to be a matrix, either 32-bit or 16-bit float tensor.")
    _check(mat2.dtype is dtypes.int8, f"{name} B to be int8 tensor.")
    _check(mat2.dim() == 2 and mat2.shape[1] == self.shape[1], f"{name} B to be a matrix with {self.shape[1]} columns.")
    _check(scales.dim() == 1 and len(scales) == len(mat2), f"{name} scales to be 1d tensor with size {len(mat2)}")
    _check(scales.dtype is self.dtype, f"expected scalar type {self.dtype} but found {scales.dtype}")
    return (self.float() @ mat2.float().t() * scales.float()).to(self.dtype)


def _convert_weight_to_int4pack_for_cpu(self: Tensor, innerKTiles: int) -> object:
    """Numbers from 0 to 15, two in a byte.  (N, K) of int32 -> (N, K / 2) of uint8

    innerKTiles: taken for the sake of what packs for GPUs.  Raises RuntimeError for other dtypes, rows not in
        sixteens and odd columns.
    """
    name = "_convert_weight_to_int4pack_for_cpu: expect"
    _check(self.dtype is dtypes.int32, f"{name} weight to be kInt.")
    _check(self.dim() == 2, f"{name} weight to be 2D tensor.")
    _check(len(self) % 16 == 0, f"{name} N to be dividable by 16")
    _check(self.shape[1] % 2 == 0, f"{name} K to be dividable by 2")
    low, high = self[:, 0::2] & 15, self[:, 1::2] & 15
    return (low | high << 4).to(dtypes.uint8)


def _weight_int4pack_mm_for_cpu(self: Tensor, mat2: Tensor, qGroupSize: int, qScaleAndZeros: Tensor) -> object:
    """x @ w.T of a packed weight: (n - 8) * scale + zero, with a scale and a zero for each group of a row; in float32.

    (M, K), (N, K / 2) as `_convert_weight_to_int4pack_for_cpu` gives it, (K / qGroupSize, N, 2) -> (M, N).  Raises
    RuntimeError for other dtypes, shapes and sizes of groups.
    """
    name, rows = "_weight_int4pack_mm_for_cpu: expect", len(mat2)
    _check(self.dim() == 2 and self.dtype in _KINDS, f"{name} A to be a matrix, either 32-bit or 16-bit float tensor.")
    _check(mat2.dtype is dtypes.uint8 and mat2.dim() == 2, f"{name} B to be uint8 tensor, of two dimensions.")
    columns = self.shape[1]
    _check(2 * mat2.shape[1] == columns, f"{name} B to have half of A's {columns} columns, got {mat2.shape[1]}.")
    _check(qGroupSize in _GROUPS, f"{name} qGroupSize to be 32, 64, 128 or 256, got {qGroupSize}")
    _check(
        columns % qGroupSize == 0, f"{name} K to be divisible by qGroupSize, got K:{columns}, qGroupSize:{qGroupSize}"
    )
    groups = columns // qGroupSize
    _check(
        tuple(qScaleAndZeros.shape) == (groups, rows, 2),
        f"{name} qScaleAndZeros to be 3d tensor with sizes [{groups}, {rows}, 2]",
    )
    _check(qScaleAndZeros.dtype is self.dtype, f"expected scalar type {self.dtype} but found {qScaleAndZeros.dtype}")
    numbers = named.stack((mat2 & 15, mat2 >> 4), dim=-1).reshape(rows, groups, qGroupSize)
    scale, zero = qScaleAndZeros.float().permute(2, 1, 0)[..., None]
    weight = ((numbers.float() - 8) * scale + zero).reshape(rows, columns)
    return (self.float() @ weight.t()).to(self.dtype)


MEANINGS = {
    fn.__name__: fn for fn in (_convert_weight_to_int4pack_for_cpu, _weight_int4pack_mm_for_cpu, _weight_int8pack_mm)
}
