"""A Kolmogorov-Arnold network: splines on its edges, grids that follow the data, L-BFGS, and an edge made symbolic"""

import same
import torch
from kan import KAN

torch.set_default_dtype(torch.float64)
x = same.data(60, 2).double().clamp(-1, 1)
data = {"train_input": x, "train_label": torch.sin(3 * x[:, :1]) + x[:, 1:].square()}
data |= {"test_input": x[:20], "test_label": data["train_label"][:20]}
model = KAN(width=[2, 3, 1], grid=4, k=3, seed=0, auto_save=False)
with torch.no_grad():
    for name, p in model.named_parameters():
        if p.requires_grad and "symbolic" not in name and "grid" not in name and "mask" not in name:
            p.copy_(same.data(*p.shape, seed=len(name)) * 0.2)
model.update_grid_from_samples(x)
numbers = [model(x).square().mean().item()]
for optimizer, lr in (("Adam", 0.01), ("LBFGS", 1.0)):
    found = model.fit(data, opt=optimizer, steps=4, lr=lr, lamb=0.001, update_grid=optimizer == "Adam")
    numbers += [float(loss) for loss in found["train_loss"]]
model.fix_symbolic(0, 1, 0, "x^2", verbose=False)
numbers.append(model(x).square().mean().item())
refined = model.refine(6)
same.report([*numbers, refined(x).square().mean().item()])
