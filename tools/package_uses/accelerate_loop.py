"""A loop prepared by Accelerator, and a model made without memory."""

import same
import torch
from accelerate import Accelerator, init_empty_weights

with init_empty_weights():
    empty = torch.nn.Linear(10**3, 10**3)
assert empty.weight.is_meta and empty.weight.numel() == 10**6
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
model = same.weights(torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 3)))
rows = torch.utils.data.TensorDataset(same.data(24, 8), same.labels(24, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
model, optimizer, loader = accelerator.prepare(model, optimizer, torch.utils.data.DataLoader(rows, batch_size=4))
losses = []
for x, y in loader:
    with accelerator.accumulate(model):
        loss = torch.nn.functional.cross_entropy(model(x), y)
        accelerator.backward(loss)
        accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    losses.append(accelerator.gather(loss.detach()).mean().item())
same.report(losses)
