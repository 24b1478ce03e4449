"""Segmentation with a U-Net and an FPN on a small encoder, by two losses."""

import same
import segmentation_models_pytorch as smp

found = []
for make in (smp.Unet, smp.FPN):
    net = same.weights(make("resnet18", encoder_weights=None, in_channels=3, classes=2), 0.05).eval()
    x, y = same.data(2, 3, 64, 64), same.labels(2 * 64 * 64, 2).reshape(2, 64, 64)
    out = net(x)
    loss = smp.losses.DiceLoss("multiclass")(out, y) + smp.losses.FocalLoss("multiclass")(out, y)
    loss.backward()
    found += [loss.item(), sum(p.grad.abs().mean().item() for p in net.parameters() if p.grad is not None)]
    tp, fp, fn, tn = smp.metrics.get_stats(out.argmax(1), y, mode="multiclass", num_classes=2)
    found.append(float(smp.metrics.iou_score(tp, fp, fn, tn, reduction="micro")))
same.report(found)
