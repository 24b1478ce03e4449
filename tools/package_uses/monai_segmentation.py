"""A three-dimensional UNet trained on Dice loss, with sliding windows, metrics and transforms of dictionaries"""

import numpy as np
import same
import torch
from monai.data import DataLoader, Dataset
from monai.inferers import sliding_window_inference
from monai.losses import DiceCELoss, DiceLoss
from monai.metrics import DiceMetric
from monai.networks.nets import UNet
from monai.transforms import Compose, EnsureChannelFirstd, ScaleIntensityd, ToTensord

net = same.weights(
    UNet(spatial_dims=3, in_channels=1, out_channels=2, channels=(4, 8, 16), strides=(2, 2), num_res_units=1)
)
items = [{"image": np.random.default_rng(i).random((16, 16, 16)).astype("float32"),
          "label": (np.random.default_rng(i + 9).random((16, 16, 16)) > 0.6).astype("float32")} for i in range(4)]  # fmt: skip
transform = Compose(
    [
        EnsureChannelFirstd(keys=["image", "label"], channel_dim="no_channel"),
        ScaleIntensityd(keys="image"),
        ToTensord(keys=["image", "label"]),
    ]
)
loader = DataLoader(Dataset(items, transform), batch_size=2)
optimizer = torch.optim.Adam(net.parameters(), 1e-3)
dice, both, found = DiceLoss(to_onehot_y=True, softmax=True), DiceCELoss(to_onehot_y=True, softmax=True), []
for batch in loader:
    optimizer.zero_grad()
    out = net(batch["image"])
    loss = dice(out, batch["label"]) + both(out, batch["label"])
    loss.backward()
    optimizer.step()
    found.append(loss.item())
net.eval()
with torch.no_grad():
    image = torch.as_tensor(same.data(1, 1, 24, 16, 16))
    seen = sliding_window_inference(image, (16, 16, 16), 2, net, overlap=0.25)
metric = DiceMetric(include_background=False)
metric(torch.nn.functional.one_hot(seen.argmax(1), 2).movedim(-1, 1).float(), (image > 0).float().repeat(1, 2, 1, 1, 1))
same.report(
    [*found, seen.sum().item(), metric.aggregate().item(), *(p.grad.abs().sum().item() for p in net.parameters())]
)
