"""A step of several families of models."""

import same
import timm
import torch

losses = []
for name in ("resnet18", "efficientnet_b0", "vit_tiny_patch16_224", "convnext_atto", "mobilenetv3_small_050"):
    options = {"img_size": 32, "patch_size": 8} if name.startswith("vit") else {}
    model = same.weights(timm.create_model(name, num_classes=5, **options), 0.05).double()
    x, y = same.data(2, 3, 32, 32).double(), same.labels(2, 5)
    model.eval()
    for p in model.parameters():
        p.grad = None
    loss = torch.nn.functional.cross_entropy(model(x), y)
    loss.backward()
    losses += [loss.item(), sum(p.grad.abs().sum().item() for p in model.parameters() if p.grad is not None)]
same.report(losses)
