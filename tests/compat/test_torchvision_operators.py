"""The operators that torchvision is compiled with, against plain loops."""

import math

import numpy as np
import pytest

import rushlight as torch

torch.ops.load_library("/anywhere/torchvision/_C.so")
operators = torch.ops.torchvision
ROIS = torch.tensor([[0, 0, 0, 7, 7], [1, 2.3, 1.7, 9.9, 6.2], [0, 5, 5, 5.2, 5.1], [1, -4, -3, 3, 2], [0, 6, 6, 30, 20]],
                    dtype=torch.float64)  # fmt: skip
P, Q, N, H, W = 3, 2, 2, 9, 11


@pytest.fixture
def images():
    torch.manual_seed(0)
    return torch.randn(N, 12, H, W, dtype=torch.float64)


def pixel(image, y: float, x: float):
    """The value between pixels, those at the rim going on for one; 0 beyond."""
    if not (-1 <= y <= H and -1 <= x <= W):
        return 0
    y, x = min(max(y, 0), H - 1), min(max(x, 0), W - 1)
    i, j = int(y), int(x)
    below, right = min(i + 1, H - 1), min(j + 1, W - 1)
    return ((image[:, i, j] * (j + 1 - x) + image[:, i, right] * (x - j)) * (i + 1 - y)
            + (image[:, below, j] * (j + 1 - x) + image[:, below, right] * (x - j)) * (y - i))  # fmt: skip


def bins_by_samples(images, scale: float, ratio: int, shift: float, least: float):
    """(K, C, P, Q): means of samples."""
    found = np.zeros((len(ROIS), images.shape[1], P, Q))
    for k, (image, x1, y1, x2, y2) in enumerate(ROIS.numpy() * [1, scale, scale, scale, scale]):
        top, left, high, wide = y1 - shift, x1 - shift, max(y2 - y1, least), max(x2 - x1, least)
        rows, columns = (ratio if ratio > 0 else math.ceil(length / n) for length, n in ((high, P), (wide, Q)))
        for p, q, i, j in np.ndindex(P, Q, rows, columns):
            y, x = top + (p + (i + 0.5) / rows) * high / P, left + (q + (j + 0.5) / columns) * wide / Q
            found[k, :, p, q] += pixel(images[int(image)], y, x) / (rows * columns)
    return found


@pytest.mark.parametrize("ratio", [-1, 2])
@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_regions_by_samples(images, ratio: int, scale: float) -> None:
    for aligned, shift, least in ((False, 0, 1.0), (True, 0.5, 0)):
        found = operators.roi_align(images, ROIS, scale, P, Q, ratio, aligned)
        np.testing.assert_allclose(found, bins_by_samples(images.numpy(), scale, ratio, shift, least), atol=1e-12)
    by_bin, channels = operators.ps_roi_align(images, ROIS, scale, P, Q, ratio)
    wanted = bins_by_samples(images.numpy(), scale, ratio, 0.5, 0).reshape(len(ROIS), 2, P, Q, P, Q)
    np.testing.assert_allclose(by_bin, np.einsum("kcpqpq->kcpq", wanted), atol=1e-12)
    assert channels.dtype is torch.int32 and channels[3].equal(torch.arange(12, dtype=torch.int32).view(2, P, Q))


def edges(low: float, high: float, bins: int, p: int, extent: int, more: int) -> slice:
    start, end = math.floor(low + 0.5), math.floor(high + 0.5)
    size = max(end - start + more, 1) / bins
    first, last = math.floor(p * size) + start, math.ceil((p + 1) * size) + start
    return slice(min(max(first, 0), extent), min(max(last, 0), extent))


@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_regions_by_pixels(images, scale: float) -> None:
    largest, where = operators.roi_pool(images, ROIS, scale, P, Q)
    means, _ = operators.ps_roi_pool(images, ROIS, scale, P, Q)
    for k, p, q in np.ndindex(len(ROIS), P, Q):
        image, x1, y1, x2, y2 = ROIS[k].numpy() * [1, scale, scale, scale, scale]
        for more in (0, 1):
            block = images.numpy()[int(image), :, edges(y1, y2, P, p, H, more), edges(x1, x2, Q, q, W, more)]
            if more and block.size:
                np.testing.assert_array_equal(largest[k, :, p, q], block.max((1, 2)))
                flat = images[int(image)].flatten(1)
                assert flat.gather(1, where[k, :, p, q, None].long())[:, 0].equal(largest[k, :, p, q])
            elif more:
                assert (where[k, :, p, q] == -1).all() and (largest[k, :, p, q] == 0).all()
            else:
                mean = block.reshape(2, P, Q, -1)[:, p, q].mean(1) if block.size else np.zeros(2)
                np.testing.assert_allclose(means[k, :, p, q], mean, atol=1e-12)


def test_gradients_are_transposed(images) -> None:
    shape = tuple(images.shape)
    grad = torch.randn(len(ROIS), 12, P, Q, dtype=torch.float64)
    part, some = grad[:, :2].contiguous(), (ROIS, 0.5, P, Q)
    largest, where = operators.roi_pool(images, *some)
    means, channels = operators.ps_roi_pool(images, *some)
    cases = [
        (grad, operators.roi_align(images, *some, 2, True), operators._roi_align_backward(grad, *some, *shape, 2, True)),
        (grad, largest, operators._roi_pool_backward(grad, ROIS, where, 0.5, P, Q, *shape)),
        (part, means, operators._ps_roi_pool_backward(part, ROIS, channels, 0.5, P, Q, *shape)),
        (part, operators.ps_roi_align(images, *some, 2)[0],
         operators._ps_roi_align_backward(part, ROIS, channels, 0.5, P, Q, 2, *shape)),
    ]  # fmt: skip
    for g, result, back in cases:
        assert back.shape == shape and torch.allclose((g * result).sum(), (back * images).sum())


def test_no_regions(images) -> None:
    none, shape = ROIS[:0], tuple(images.shape)
    assert operators.roi_align(images, none, 1.0, P, Q, 2, True).shape == (0, 12, P, Q)
    back = operators._roi_align_backward(
        torch.zeros(0, 12, P, Q, dtype=torch.float64), none, 1.0, P, Q, *shape, 2, True
    )
    assert back.shape == shape and not back.any()


def taps(image, weight, moved, mask, place: tuple[int, int], stride: int, pad: int, dilation: int):
    """One output of a deformed convolution of one group, by its definition."""
    total, kernel = 0.0, weight.shape[1:]
    for i, j in np.ndindex(kernel):
        tap = i * kernel[1] + j
        y = place[0] * stride - pad + i * dilation + moved[2 * tap]
        x = place[1] * stride - pad + j * dilation + moved[2 * tap + 1]
        for a in (math.floor(y), math.floor(y) + 1):
            for b in (math.floor(x), math.floor(x) + 1):
                if 0 <= a < H and 0 <= b < W:
                    near = (1 - abs(y - a)) * (1 - abs(x - b)) * (mask[tap] if mask is not None else 1)
                    total += near * (weight[:, i, j] * image[:, a, b]).sum()
    return total


@pytest.mark.parametrize("groups, offset_groups, use_mask", [(1, 1, False), (2, 1, True), (1, 2, True)])
def test_deformed_convolutions(images, groups: int, offset_groups: int, use_mask: bool) -> None:
    x = images[:, :4].contiguous()
    weight, bias = torch.randn(6, 4 // groups, 3, 2, dtype=torch.float64), torch.randn(6, dtype=torch.float64)
    stride, pad, dilation = 2, 1, 2
    p, q = (H + 2 * pad - dilation * 2 - 1) // stride + 1, (W + 2 * pad - dilation - 1) // stride + 1
    offset = torch.randn(N, offset_groups * 12, p, q, dtype=torch.float64) * 2
    mask = (
        torch.rand(N, offset_groups * 6, p, q, dtype=torch.float64)
        if use_mask
        else torch.zeros(N, 1, dtype=torch.float64)
    )
    steps = (stride, stride, pad, pad, dilation, dilation, groups, offset_groups, use_mask)
    found = operators.deform_conv2d(x, weight, offset, mask, bias, *steps)
    assert found.shape == (N, 6, p, q)
    for n, d, i, j in ((0, 0, 0, 0), (1, 5, p - 1, q - 1), (0, 3, 1, 2)):
        total = bias[d].item()
        for group in range(offset_groups):
            # Channels of this weight, and those of this group of offsets among them.
            first = d // (6 // groups) * (4 // groups)
            channels = [c for c in range(first, first + 4 // groups) if c // (4 // offset_groups) == group]
            rows = [c - first for c in channels]
            moved = offset[n, 12 * group : 12 * group + 12, i, j].numpy()
            masked = mask[n, 6 * group : 6 * group + 6, i, j].numpy() if use_mask else None
            total += taps(x[n].numpy()[channels], weight[d].numpy()[rows], moved, masked, (i, j), stride, pad, dilation)
        assert found[n, d, i, j].item() == pytest.approx(total)
    grad = torch.randn_like(found)
    by_input, by_weight, by_offset, by_mask, by_bias = operators._deform_conv2d_backward(
        grad, x, weight, offset, mask, bias, *steps
    )
    plain = (grad * (found - bias.view(-1, 1, 1))).sum()
    assert torch.allclose((by_input * x).sum(), plain) and torch.allclose((by_weight * weight).sum(), plain)
    assert torch.allclose(by_bias, grad.sum((0, 2, 3))) and by_mask.shape == mask.shape
    step = 1e-6 * torch.randn_like(offset)
    moved = operators.deform_conv2d(x, weight, offset + step, mask, bias, *steps)
    assert ((moved - found) * grad).sum().item() == pytest.approx((by_offset * step).sum().item(), rel=1e-3)


def test_boxes_that_overlap() -> None:
    torch.manual_seed(1)
    corners = torch.rand(60, 2, dtype=torch.float64) * 9
    boxes = torch.cat([corners, corners + torch.rand(60, 2, dtype=torch.float64) * 6], 1)
    scores = torch.rand(60, dtype=torch.float64)

    def ratio(a, b) -> float:
        wide, high = (max(0, min(a[i + 2], b[i + 2]) - max(a[i], b[i])) for i in (0, 1))
        areas = [(c[2] - c[0]) * (c[3] - c[1]) for c in (a, b)]
        return wide * high / (sum(areas) - wide * high)

    for limit in (0.1, 0.5, 0.9):
        kept: list[int] = []
        for i in scores.argsort(descending=True).tolist():
            if all(ratio(boxes[i].tolist(), boxes[j].tolist()) <= limit for j in kept):
                kept.append(i)
        assert operators.nms(boxes, scores, limit).tolist() == kept and (len(kept) < 60 or limit == 0.9)
    assert operators.nms(boxes[:0], scores[:0], 0.5).shape == (0,) and operators._cuda_version() == -1
    with pytest.raises(RuntimeError, match=r"expected boxes of shape \(K, 4\)"):
        operators.nms(torch.ones(2, 3), torch.ones(2), 0.5)
