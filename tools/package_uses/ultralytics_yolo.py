"""YOLO made from its configuration: detection and segmentation, losses, steps, fused layers, and boxes found"""

import os
import tempfile

os.environ["YOLO_CONFIG_DIR"] = tempfile.mkdtemp()
os.environ["YOLO_OFFLINE"] = "true"
import same
import torch
from ultralytics.cfg import get_cfg
from ultralytics.nn.tasks import DetectionModel, SegmentationModel
from ultralytics.utils.nms import non_max_suppression

torch.manual_seed(0)
numbers = []
for kind, name in (
    (DetectionModel, "yolov8n.yaml"),
    (DetectionModel, "yolo11n.yaml"),
    (SegmentationModel, "yolov8n-seg.yaml"),
):
    model = kind(name, ch=3, nc=3, verbose=False).double()
    model.args = get_cfg()
    model.train()
    batch = {"img": torch.sigmoid(same.data(2, 3, 64, 64)).double(), "batch_idx": torch.tensor([0.0, 0.0, 1.0]), "cls": torch.tensor([[0.0], [2.0], [1.0]]),
             "bboxes": torch.tensor([[0.5, 0.5, 0.4, 0.3], [0.3, 0.6, 0.2, 0.2], [0.6, 0.4, 0.5, 0.5]]), "masks": (same.data(2, 16, 16) > 0).float()}  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, nesterov=True)
    for _ in range(2):
        loss, parts = model(batch)
        optimizer.zero_grad()
        loss.sum().backward()
        optimizer.step()
        numbers += [
            *loss.flatten().tolist(),
            sum(p.grad.abs().sum().item() for p in model.parameters() if p.grad is not None) / 1000,
        ]
    model.eval()
    with torch.no_grad():
        out = model(batch["img"])
        numbers.append(out[0].mean().item() if torch.is_tensor(out[0]) else out[0][0].mean().item())
        fused = model.fuse(verbose=False)(batch["img"])
        numbers.append(fused[0].mean().item() if torch.is_tensor(fused[0]) else fused[0][0].mean().item())
        if kind is DetectionModel:
            found = non_max_suppression(out, conf_thres=0.001, iou_thres=0.6, max_det=20)
            numbers += [float(len(f)) for f in found]
same.report(numbers)
