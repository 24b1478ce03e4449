"""Measures of the quality of pictures, differentiated"""

import piq
import same
import torch

x, y = torch.sigmoid(same.data(2, 3, 64, 64).double()), torch.sigmoid(same.data(2, 3, 64, 64, seed=1).double())
numbers = []
large = (
    torch.nn.functional.interpolate(x, size=(192, 192), mode="bilinear"),
    torch.nn.functional.interpolate(y, size=(192, 192), mode="bilinear"),
)
for _name, measure, (a, b) in (
    ("ssim", piq.ssim, (x, y)), ("psnr", piq.psnr, (x, y)), ("gmsd", piq.gmsd, (x, y)), ("ms_gmsd", piq.multi_scale_gmsd, (x, y)), ("fsim", piq.fsim, (x, y)),
    ("vsi", piq.vsi, (x, y)), ("vif", piq.vif_p, (x, y)), ("haarpsi", piq.haarpsi, (x, y)), ("mdsi", piq.mdsi, (x, y)), ("srsim", piq.srsim, large),
    ("dss", piq.dss, (x, y)), ("ms_ssim", piq.multi_scale_ssim, large), ("iw_ssim", piq.information_weighted_ssim, large),
):  # fmt: skip
    a = a.clone().requires_grad_()
    value = measure(a, b, data_range=1.0)
    value.backward()
    numbers += [value.item(), a.grad.abs().sum().item()]
a = x.clone().requires_grad_()
value = piq.total_variation(a)
value.backward()
numbers += [value.item(), a.grad.abs().sum().item()]
numbers.append(piq.FID()(same.data(30, 8), same.data(30, 8, seed=2)).item())
same.report(numbers)
