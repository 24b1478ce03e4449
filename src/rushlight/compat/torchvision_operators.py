"""The compiled operators of torchvision, on these tensors: ``torch.ops.torchvision``.

An installed torchvision asks for them by name (`torch.ops.load_library`), and has formulas of its own for their derivatives,
which call those named ``_..._backward``.  Shape letters: N images, C channels, H x W pixels, K regions, P x Q bins.

Pooling over a region is the same as two products: a bin's value is a weighted mean of pixels, and the weights are those of
its rows times those of its columns (He et al., Mask R-CNN, arXiv:1703.06870, for the bilinear ones).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import rushlight
from rushlight import Tensor
from rushlight.compat.supplied import supplier
from rushlight.library import Library
from rushlight.nn import functional as F

# Functions of the package are attached when it is imported, so that their types are not known.
# mypy: disable-error-code="no-any-return"
torch: Any = rushlight

__all__ = ["LIBRARY"]

LIBRARY = Library("torchvision", "DEF")
REGIONS = "Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width"
SIZES = "SymInt batch_size, SymInt channels, SymInt height, SymInt width"


# Declared, and not supplied: quantized tensors, and boxes that are turned.
for _schema in (
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    f"qroi_align({REGIONS}, int sampling_ratio, bool aligned) -> Tensor",
    "box_iou_rotated(Tensor boxes1, Tensor boxes2) -> Tensor",
):
    LIBRARY.define(_schema)


operator = supplier(LIBRARY)


@operator("_cuda_version() -> int")
def _cuda_version() -> int:
    """The version of CUDA that the operators were compiled for: none."""
    return -1


@operator("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
def nms(dets: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """Indices of the boxes that no better one overlaps by more than a ratio, best first.

    dets: (K, 4) corners x1, y1, x2, y2; scores: (K).  Returns int64 (at most K).  Raises RuntimeError for other shapes.
    """
    if dets.dim() != 2 or dets.size(1) != 4 or scores.dim() != 1 or dets.size(0) != scores.size(0):
        raise RuntimeError(
            f"nms: expected boxes of shape (K, 4) and scores of shape (K), got {tuple(dets.shape)} and {tuple(scores.shape)}"
        )
    x1, y1, x2, y2 = dets.double().numpy().T
    areas = (x2 - x1) * (y2 - y1)
    order = np.argsort(-scores.double().numpy(), kind="stable")
    kept = []
    while len(order):
        best, order = order[0], order[1:]
        kept.append(best)
        width = np.minimum(x2[best], x2[order]) - np.maximum(x1[best], x1[order])
        height = np.minimum(y2[best], y2[order]) - np.maximum(y1[best], y1[order])
        shared = np.maximum(width, 0) * np.maximum(height, 0)
        with np.errstate(invalid="ignore", divide="ignore"):
            order = order[~(shared / (areas[best] + areas[order] - shared) > iou_threshold)]
    return torch.tensor(np.array(kept, np.int64))


def bilinear(start: float, length: float, bins: int, ratio: int, extent: int) -> np.ndarray[Any, Any]:
    """What each pixel weighs in each bin of a region, along one side.  (bins, extent)

    `ratio` points a bin, or as many as its pixels; a point between two pixels weighs both, one outside none.
    """
    count = ratio if ratio > 0 else max(math.ceil(length / bins), 0)
    weights = np.zeros((bins, extent))
    if not count:
        return weights
    at = start + (np.arange(bins)[:, None] + (np.arange(count) + 0.5) / count) * (length / bins)
    inside = (at >= -1) & (at <= extent)
    at = np.clip(at, 0, extent - 1)
    low = np.minimum(at.astype(np.int64), extent - 1)
    part = at - low
    row = np.broadcast_to(np.arange(bins)[:, None], at.shape)
    np.add.at(weights, (row, low), inside * (1 - part) / count)
    np.add.at(weights, (row, np.minimum(low + 1, extent - 1)), inside * part / count)
    return weights


def whole(start: int, length: int, bins: int, extent: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The first pixel of each bin of a region along one side, and that after its last."""
    edges = np.arange(bins + 1) * (length / bins)
    first = np.clip(np.floor(edges[:-1]).astype(np.int64) + start, 0, extent)
    last = np.clip(np.ceil(edges[1:]).astype(np.int64) + start, 0, extent)
    return first, last


def aligned_weights(rois: Tensor, scale: float, bins: tuple[int, int], ratio: int, extents: tuple[int, int],
                    shift: float, least: float) -> list[tuple[int, Any, Any]]:  # fmt: skip
    """For each region its image, and the weights of rows and columns."""
    found: list[tuple[int, Any, Any]] = []
    for image, x1, y1, x2, y2 in rois.double().numpy():
        sides: list[Any] = []
        for low, high, count, extent in ((y1, y2, bins[0], extents[0]), (x1, x2, bins[1], extents[1])):
            start, end = low * scale - shift, high * scale - shift
            sides.append(bilinear(start, max(end - start, least), count, ratio, extent))
        found.append((int(image), sides[0], sides[1]))
    return found


def mean_weights(
    rois: Tensor, scale: float, bins: tuple[int, int], extents: tuple[int, int]
) -> list[tuple[int, Any, Any]]:
    """As `aligned_weights`, of all pixels of a bin alike."""
    found: list[tuple[int, Any, Any]] = []
    for image, x1, y1, x2, y2 in rois.double().numpy():
        sides: list[Any] = []
        for low, high, count, extent in ((y1, y2, bins[0], extents[0]), (x1, x2, bins[1], extents[1])):
            start, end = (math.floor(v * scale + 0.5) for v in (low, high))
            first, last = whole(start, max(end - start, 1), count, extent)
            pixels = np.arange(extent)
            inside = (pixels >= first[:, None]) & (pixels < last[:, None])
            sides.append(inside / np.maximum(last - first, 1)[:, None])
        found.append((int(image), sides[0], sides[1]))
    return found


def pooled(input: Tensor, weights: list[tuple[int, Any, Any]], bins: tuple[int, int]) -> Tensor:
    """Weighted means over regions.  (N, C, H, W) -> (K, C, P, Q)"""
    rows = [
        torch.tensor(down, dtype=input.dtype) @ input[image] @ torch.tensor(across.T.copy(), dtype=input.dtype)
        for image, down, across in weights
    ]
    return torch.stack(rows) if rows else input.new_zeros((0, input.size(1), *bins))


def pooled_by_position(input: Tensor, weights: list[tuple[int, Any, Any]], bins: tuple[int, int]) -> Tensor:
    """Weighted means over regions, where each bin has channels of its own.  (N, C P Q, H, W) -> (K, C, P, Q)"""
    split = input.unflatten(1, (-1, *bins))
    rows = [
        torch.einsum(
            "py,qx,cpqyx->cpq",
            torch.tensor(down, dtype=input.dtype),
            torch.tensor(across, dtype=input.dtype),
            split[image],
        )
        for image, down, across in weights
    ]
    return torch.stack(rows) if rows else input.new_zeros((0, split.size(1), *bins))


def mapping(rois: Tensor, channels: int, bins: tuple[int, int]) -> Tensor:
    """Which channel each bin was taken from.  int32 (K, C, P, Q)"""
    places = torch.arange(channels, dtype=torch.int32).view(-1, *bins)
    return places.expand(rois.size(0), *places.shape).contiguous()


def transposed(forward: Callable[[Tensor], Tensor], shape: tuple[int, ...], grad: Tensor) -> Tensor:
    """The gradient of the input of a function that is linear in it."""
    with torch.enable_grad():
        input = torch.zeros(shape, dtype=grad.dtype, requires_grad=True)
        result = forward(input)
        if not result.requires_grad:  # no region, and so nothing that depends on the input
            return input.detach()
        (found,) = torch.autograd.grad(result, input, grad)
    return found


@operator(f"roi_align({REGIONS}, int sampling_ratio, bool aligned) -> Tensor")
def roi_align(
    input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int, ratio: int, aligned: bool
) -> Tensor:
    """Means over regions, of bilinear samples.  (N, C, H, W), (K, 5) -> (K, C, P, Q)"""
    bins = (pooled_height, pooled_width)
    extents = (input.size(2), input.size(3))
    shift, least = (0.5, -math.inf) if aligned else (0.0, 1.0)
    return pooled(input, aligned_weights(rois, spatial_scale, bins, ratio, extents, shift, least), bins)


@operator(f"_roi_align_backward(Tensor grad, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, {SIZES}, "
          "int sampling_ratio, bool aligned) -> Tensor")  # fmt: skip
def _roi_align_backward(grad: Tensor, rois: Tensor, scale: float, p: int, q: int, *rest: Any) -> Tensor:
    *shape, ratio, aligned = rest
    return transposed(lambda input: roi_align(input, rois, scale, p, q, ratio, aligned), tuple(shape), grad)


@operator(f"ps_roi_align({REGIONS}, int sampling_ratio) -> (Tensor, Tensor)")
def ps_roi_align(
    input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int, ratio: int
) -> tuple[Tensor, Tensor]:
    """As `roi_align`, each bin with channels of its own, and which these are.  (N, C P Q, H, W) -> (K, C, P, Q), int32 (K, C, P, Q)

    Dai et al., R-FCN, arXiv:1605.06409.
    """
    bins = (pooled_height, pooled_width)
    weights = aligned_weights(rois, spatial_scale, bins, ratio, (input.size(2), input.size(3)), 0.5, -math.inf)
    return pooled_by_position(input, weights, bins), mapping(rois, input.size(1), bins)


@operator("_ps_roi_align_backward(Tensor grad, Tensor rois, Tensor channel_mapping, float spatial_scale, SymInt pooled_height, "
          f"SymInt pooled_width, int sampling_ratio, {SIZES}) -> Tensor")  # fmt: skip
def _ps_roi_align_backward(
    grad: Tensor, rois: Tensor, channels: Tensor, scale: float, p: int, q: int, ratio: int, *shape: int
) -> Tensor:
    return transposed(lambda input: ps_roi_align(input, rois, scale, p, q, ratio)[0], shape, grad)


@operator(f"ps_roi_pool({REGIONS}) -> (Tensor, Tensor)")
def ps_roi_pool(
    input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int
) -> tuple[Tensor, Tensor]:
    """Means over the pixels of regions, each bin with channels of its own.  (N, C P Q, H, W) -> (K, C, P, Q), int32 (K, C, P, Q)"""
    bins = (pooled_height, pooled_width)
    weights = mean_weights(rois, spatial_scale, bins, (input.size(2), input.size(3)))
    return pooled_by_position(input, weights, bins), mapping(rois, input.size(1), bins)


@operator("_ps_roi_pool_backward(Tensor grad, Tensor rois, Tensor channel_mapping, float spatial_scale, SymInt pooled_height, "
          f"SymInt pooled_width, {SIZES}) -> Tensor")  # fmt: skip
def _ps_roi_pool_backward(
    grad: Tensor, rois: Tensor, channels: Tensor, scale: float, p: int, q: int, *shape: int
) -> Tensor:
    return transposed(lambda input: ps_roi_pool(input, rois, scale, p, q)[0], shape, grad)


@operator(f"roi_pool({REGIONS}) -> (Tensor, Tensor)")
def roi_pool(
    input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int
) -> tuple[Tensor, Tensor]:
    """The largest pixels of regions, and where they are.  (N, C, H, W), (K, 5) -> (K, C, P, Q), int32 (K, C, P, Q)

    Girshick, Fast R-CNN, arXiv:1504.08083.  An empty bin is 0, and its place -1.
    """
    channels, height, width = input.shape[1:]
    shape = (rois.size(0), channels, pooled_height, pooled_width)
    best, where = np.zeros(shape, input.numpy().dtype), np.full(shape, -1, np.int32)
    for k, (image, x1, y1, x2, y2) in enumerate(rois.double().numpy()):
        rows, columns = (
            whole(low, max(high - low + 1, 1), bins, extent)
            for low, high, bins, extent in (
                (*(math.floor(v * spatial_scale + 0.5) for v in (y1, y2)), pooled_height, height),
                (*(math.floor(v * spatial_scale + 0.5) for v in (x1, x2)), pooled_width, width),
            )
        )
        for p, (top, bottom) in enumerate(zip(*rows, strict=True)):
            for q, (left, right) in enumerate(zip(*columns, strict=True)):
                if bottom > top and right > left:
                    block = input[int(image), :, top:bottom, left:right].numpy().reshape(channels, -1)
                    at = block.argmax(1)
                    best[k, :, p, q] = block.max(1)
                    where[k, :, p, q] = (top + at // (right - left)) * width + left + at % (right - left)
    return torch.from_numpy(best), torch.from_numpy(where)


@operator("_roi_pool_backward(Tensor grad, Tensor rois, Tensor argmax, float spatial_scale, SymInt pooled_height, "
          f"SymInt pooled_width, {SIZES}) -> Tensor")  # fmt: skip
def _roi_pool_backward(grad: Tensor, rois: Tensor, argmax: Tensor, scale: float, p: int, q: int, *shape: int) -> Tensor:
    images, channels, height, width = shape
    found = grad.new_zeros((images, channels, height * width))
    for k, image in enumerate(rois[:, 0].tolist()):
        places = argmax[k].flatten(1).long()
        found[int(image)].scatter_add_(1, places.clamp(min=0), grad[k].flatten(1) * (places >= 0))
    return found.view(shape)


def sampled(input: Tensor, offset: Tensor, mask: Tensor | None, kernel: tuple[int, int], steps: Any) -> Tensor:
    """What each tap of a kernel sees at each place.  (N, C, H, W) -> (N, C, taps, P, Q)"""
    (stride_h, stride_w), (pad_h, pad_w), (dilation_h, dilation_w), groups = steps
    taps, (p, q) = kernel[0] * kernel[1], offset.shape[2:]
    moved = offset.view(offset.size(0), groups, taps, 2, p, q)
    i, j = np.divmod(np.arange(taps), kernel[1])
    down = torch.tensor((i * dilation_h - pad_h)[:, None, None] + (np.arange(p) * stride_h)[:, None], dtype=input.dtype)
    across = torch.tensor((j * dilation_w - pad_w)[:, None, None] + np.arange(q) * stride_w, dtype=input.dtype)
    y, x = down + moved[:, :, :, 0], across + moved[:, :, :, 1]
    # As grid_sample counts: from -1 to 1, pixels being squares.
    grid = torch.stack([(2 * x + 1) / input.size(3) - 1, (2 * y + 1) / input.size(2) - 1], -1)
    parts = input.unflatten(1, (groups, -1)).flatten(0, 1)
    values = F.grid_sample(parts, grid.flatten(0, 1).flatten(1, 2), align_corners=False)
    values = values.view(input.size(0), groups, -1, taps, p, q)
    if mask is not None:
        values = values * mask.view(mask.size(0), groups, 1, taps, p, q)
    return values.flatten(1, 2)


STEPS = ("SymInt stride_h, SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, SymInt groups, "
         "SymInt offset_groups, bool use_mask")  # fmt: skip


@operator(f"deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, {STEPS}) -> Tensor")
def deform_conv2d(input: Tensor, weight: Tensor, offset: Tensor, mask: Tensor, bias: Tensor, *steps: Any) -> Tensor:
    """A convolution whose taps are moved by `offset` and weighed by `mask`.  (N, C, H, W) -> (N, D, P, Q)

    Zhu et al., Deformable ConvNets v2, arXiv:1811.11168.
    """
    stride, pad, dilation, (groups, offset_groups, use_mask) = steps[:2], steps[2:4], steps[4:6], steps[6:]
    kernel = (weight.size(2), weight.size(3))
    seen = sampled(input, offset, mask if use_mask else None, kernel, (stride, pad, dilation, offset_groups))
    p, q = seen.shape[-2:]
    columns = seen.unflatten(1, (groups, -1)).flatten(2, 3).flatten(3)
    rows = weight.flatten(1).unflatten(0, (groups, -1))
    return (rows @ columns).flatten(1, 2).unflatten(2, (p, q)) + bias.view(-1, 1, 1)


@operator(f"_deform_conv2d_backward(Tensor grad, Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, {STEPS}) -> "
          "(Tensor, Tensor, Tensor, Tensor, Tensor)")  # fmt: skip
def _deform_conv2d_backward(grad: Tensor, *rest: Any) -> tuple[Tensor, ...]:
    with torch.enable_grad():
        given = [x.detach().requires_grad_() for x in rest[:5]]
        found = torch.autograd.grad(deform_conv2d(*given, *rest[5:]), given, grad, allow_unused=True)
    return tuple(torch.zeros_like(x) if g is None else g for x, g in zip(given, found, strict=True))
