"""Faster R-CNN with random weights: losses, all gradients, a step, and boxes found, in float64"""

import sys

import same
import torch
import torchvision
from torchvision.models.detection import fasterrcnn_mobilenet_v3_large_320_fpn
from torchvision.ops import boxes, roi_align

interpolation = sys.modules["torchvision.ops.roi_align"]  # the function of that name hides it


def greedy(found, scores, iou_threshold):
    """Non-maximum suppression in Python, for a torchvision whose compiled part does not load."""
    order, kept = scores.argsort(descending=True, stable=True), []
    overlap = boxes.box_iou(found, found)
    gone = torch.zeros(len(found), dtype=torch.bool)
    for i in order.tolist():
        if not gone[i]:
            kept.append(i)
            gone |= overlap[i] > iou_threshold
    return torch.tensor(kept, dtype=torch.int64)


def within(features, batch, y, x, ymask, xmask, between=interpolation._bilinear_interpolate):
    """The Python part's interpolation, with zeros beyond the borders as the compiled part has them."""
    height, width = features.shape[-2:]
    seen = (y >= -1) & (y <= height), (x >= -1) & (x <= width)
    return between(features, batch, y, x, ymask, xmask) * (
        seen[0][:, None, :, None, :, None] & seen[1][:, None, None, :, None, :]
    )


if not torchvision.extension._has_ops():
    boxes.nms, interpolation._bilinear_interpolate = greedy, within

everything = 100000  # more than there is to choose from, so that nothing is drawn
net = fasterrcnn_mobilenet_v3_large_320_fpn(
    weights=None, weights_backbone=None, num_classes=4, min_size=96, max_size=96, rpn_batch_size_per_image=everything,
    box_batch_size_per_image=everything, rpn_pre_nms_top_n_train=60, rpn_post_nms_top_n_train=20, rpn_pre_nms_top_n_test=60,
    rpn_post_nms_top_n_test=20, box_score_thresh=0.01, trainable_backbone_layers=6,
)  # fmt: skip
net = same.weights(net, 0.03).double()
pictures = [same.data(3, 96, 96, seed=s).double().sigmoid() for s in range(2)]
targets = [{"boxes": torch.tensor([[10.0, 12, 60, 70], [40, 30, 90, 80]]).double(), "labels": torch.tensor([1, 2])},
           {"boxes": torch.tensor([[5.0, 5, 50, 40]]).double(), "labels": torch.tensor([3])}]  # fmt: skip
optimizer = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], 0.01, momentum=0.9)
found = []
for _ in range(2):
    optimizer.zero_grad()
    losses = net(pictures, targets)
    sum(losses.values()).backward()
    found += [losses[name].item() for name in sorted(losses)]
    found += [p.grad.abs().sum().item() for p in net.parameters() if p.grad is not None]
    optimizer.step()
net.eval()
with torch.no_grad():
    for seen in net(pictures):
        found += [
            len(seen["boxes"]),
            seen["boxes"].sum().item(),
            seen["scores"].sum().item(),
            seen["labels"].sum().item(),
        ]
x = same.data(1, 4, 12, 12, seed=5).requires_grad_()
pooled = roi_align(x, [torch.tensor([[1.0, 2, 9, 10], [0, 0, 5, 5]])], 3, 0.5, 2, True)
pooled.square().sum().backward()
same.report([*found, pooled.sum().item(), x.grad.abs().sum().item()])
