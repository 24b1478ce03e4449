"""A moving average of a model while it is trained, copied back at the end"""

import same
import torch
from ema_pytorch import EMA

model = same.weights(
    torch.nn.Sequential(
        torch.nn.Linear(6, 8, bias=False), torch.nn.BatchNorm1d(8), torch.nn.GELU(), torch.nn.Linear(8, 1)
    )
)
ema = EMA(model, beta=0.9, update_after_step=1, update_every=1)
x, y = same.data(32, 6), same.data(32, 1, seed=1)
optimizer = torch.optim.AdamW(model.parameters(), 0.01)
found = []
for _ in range(6):
    optimizer.zero_grad()
    loss = (model(x) - y).square().mean()
    loss.backward()
    optimizer.step()
    ema.update()
    found.append(loss.item())
ema.eval()
found.append((ema(x) - y).square().mean().item())
ema.copy_params_from_ema_to_model()
found += [p.sum().item() for p in model.parameters()]
state = ema.state_dict()
again = EMA(
    same.weights(
        torch.nn.Sequential(
            torch.nn.Linear(6, 8, bias=False), torch.nn.BatchNorm1d(8), torch.nn.GELU(), torch.nn.Linear(8, 1)
        )
    )
)
again.load_state_dict(state)
same.report([*found, again.ema_model(x).sum().item()])
