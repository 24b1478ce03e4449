"""A classification training in small: a dataset, transforms v2 of pictures, boxes and masks, ResNet-18, weights averaged, features by fx"""

import tempfile

import numpy as np
import same
import torch
from PIL import Image
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torchvision import tv_tensors
from torchvision.datasets import FakeData
from torchvision.models import resnet18
from torchvision.models.feature_extraction import create_feature_extractor, get_graph_node_names
from torchvision.transforms import v2


class Same(FakeData):
    """FakeData whose pictures do not depend on who draws."""

    def __getitem__(self, index):
        draw = np.random.default_rng(index)
        picture = Image.fromarray(draw.integers(0, 256, (40, 48, 3), dtype=np.uint8))
        return (self.transform(picture) if self.transform else picture), int(draw.integers(0, self.num_classes))


def accuracy(output, target):
    """How many are right, in percent."""
    return (output.argmax(1) == target).float().mean().item() * 100


preset = v2.Compose([v2.ToImage(), v2.Resize(36, antialias=True), v2.CenterCrop(32), v2.RandomHorizontalFlip(1.0),
                     v2.ToDtype(torch.float32, scale=True), v2.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))])  # fmt: skip
dataset = Same(size=24, image_size=(3, 40, 48), num_classes=4, transform=preset)
loader = torch.utils.data.DataLoader(dataset, batch_size=8, shuffle=False, num_workers=0)
net = same.weights(resnet18(num_classes=4), 0.03)
average = AveragedModel(net, multi_avg_fn=get_ema_multi_avg_fn(0.9), use_buffers=True)
criterion = torch.nn.CrossEntropyLoss(label_smoothing=0.1)
optimizer = torch.optim.SGD(net.parameters(), 0.02, momentum=0.9, weight_decay=1e-4, nesterov=True)
schedule = torch.optim.lr_scheduler.SequentialLR(
    optimizer, [torch.optim.lr_scheduler.LinearLR(optimizer, 0.5, total_iters=1), torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 2)], [1])  # fmt: skip
found = []
for _ in range(2):
    net.train()
    for pictures, target in loader:
        optimizer.zero_grad()
        output = net(pictures)
        loss = criterion(output, target)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        average.update_parameters(net)
        found.append(loss.item())
    schedule.step()
with tempfile.NamedTemporaryFile() as file:
    torch.save(
        {
            "model": net.state_dict(),
            "ema": average.state_dict(),
            "optimizer": optimizer.state_dict(),
            "lr": schedule.state_dict(),
        },
        file.name,
    )
    net.load_state_dict(torch.load(file.name, weights_only=True)["model"])
net.eval()
with torch.no_grad():
    pictures, target = next(iter(loader))
    found += [
        criterion(net(pictures), target).item(),
        criterion(average.module.eval()(pictures), target).item(),
        accuracy(net(pictures), target),
    ]

picture = tv_tensors.Image((same.data(3, 30, 40, seed=3).sigmoid() * 255).to(torch.uint8))
around = tv_tensors.BoundingBoxes([[2, 3, 20, 25], [10, 5, 35, 28]], format="XYXY", canvas_size=(30, 40))
mask = tv_tensors.Mask((same.data(1, 30, 40, seed=4) > 0).to(torch.uint8))
for change in (v2.Compose([v2.RandomHorizontalFlip(1.0), v2.Resize((45, 60), antialias=True), v2.CenterCrop(40)]),
               v2.Compose([v2.RandomVerticalFlip(1.0), v2.Pad(3), v2.ConvertBoundingBoxFormat("CXCYWH")]),
               v2.Compose([v2.RandomRotation((90, 90), expand=True), v2.SanitizeBoundingBoxes(labels_getter=None)]),
               v2.Compose([v2.RandomAffine(0, (0.0, 0.0), (1.2, 1.2), (10, 10)), v2.GaussianBlur(3, (1.0, 1.0)), v2.ColorJitter((1.3, 1.3)),
                           v2.RandomPosterize(4, 1.0), v2.RandomAutocontrast(1.0), v2.RandomEqualize(1.0)])):  # fmt: skip
    seen = change({"image": picture, "boxes": around, "mask": mask})
    assert [type(x).__name__ for x in seen.values()] == ["Image", "BoundingBoxes", "Mask"]
    found += [
        seen["image"].float().mean().item(),
        *seen["boxes"].float().flatten().tolist(),
        seen["mask"].float().sum().item(),
    ]

names = get_graph_node_names(net)[1]
features = create_feature_extractor(net, {"layer2.1.relu_1": "middle", "avgpool": "pooled"})(pictures)
same.report(
    [*found, len(names), *(part for x in features.values() for part in (x.sum().item(), x.square().mean().item()))]
)
