"""Gradients of each sample of convolutions, recurrences, attention and embeddings, clipped by themselves and stepped with"""

import same
import torch
from opacus import GradSampleModule
from opacus.grad_sample.grad_sample_module_fast_gradient_clipping import GradSampleModuleFastGradientClipping
from opacus.layers import DPLSTM, DPMultiheadAttention
from opacus.optimizers import DPOptimizer
from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping, DPOptimizerFastGradientClipping
from opacus.validators import ModuleValidator


class Words(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(20, 8)
        self.lstm = DPLSTM(8, 6, batch_first=True)
        self.attention = DPMultiheadAttention(6, 2, batch_first=True)
        self.norm = torch.nn.LayerNorm(6)
        self.out = torch.nn.Linear(6, 3)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.lstm(self.embedding(tokens))[0]
        return self.out(self.norm(self.attention(x, x, x)[0]).mean(1))


def pictures() -> torch.nn.Module:
    net = torch.nn.Sequential(
        torch.nn.Conv2d(2, 4, 3, stride=2, padding=1), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.Conv2d(4, 4, 3, groups=2),
        torch.nn.GroupNorm(2, 4), torch.nn.Flatten(), torch.nn.Linear(36, 3))  # fmt: skip
    return same.weights(ModuleValidator.fix(net), 0.3)


tokens = torch.tensor([[(i * 7 + j * 3) % 20 for i in range(5)] for j in range(6)])
y = same.labels(6, 3)
numbers = []
for model, x, mode in (
    (same.weights(Words(), 0.3), tokens, "hooks"),
    (pictures(), same.data(6, 2, 9, 9), "hooks"),
    (pictures(), same.data(6, 2, 9, 9), "functorch"),
):
    numbers.append(len(ModuleValidator.validate(model)))
    private = GradSampleModule(model, force_functorch=mode == "functorch")
    optimizer = DPOptimizer(
        torch.optim.SGD(private.parameters(), lr=0.2), noise_multiplier=0.0, max_grad_norm=0.3, expected_batch_size=6
    )
    for _ in range(3):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(private(x), y)
        loss.backward()
        numbers += [loss.item(), *(p.grad_sample.flatten(1).norm(dim=1).sum().item() for p in private.parameters())]
        optimizer.step()
for x, model in ((tokens, same.weights(Words(), 0.3)), (same.data(6, 2, 9, 9), pictures())):
    ghost = GradSampleModuleFastGradientClipping(model, max_grad_norm=0.3, use_ghost_clipping=True)
    optimizer = DPOptimizerFastGradientClipping(
        torch.optim.SGD(ghost.parameters(), lr=0.2), noise_multiplier=0.0, max_grad_norm=0.3, expected_batch_size=6
    )
    criterion = DPLossFastGradientClipping(ghost, optimizer, torch.nn.CrossEntropyLoss())
    for _ in range(3):
        optimizer.zero_grad()
        loss = criterion(ghost(x), y)
        loss.backward()
        optimizer.step()
        numbers += [loss.item(), *(p.grad.abs().sum().item() for p in ghost.parameters())]
same.report(numbers)
