"""Dictionaries of tensors: indexed, stacked, sent through modules, saved on disk"""

import tempfile

import same
import torch
from tensordict import TensorDict, TensorDictParams, tensorclass
from tensordict.nn import TensorDictModule, TensorDictSequential

td = TensorDict({"x": same.data(4, 3), "nested": {"y": same.data(4, 2, seed=1)}}, batch_size=[4])
found = [td[1:3]["x"].sum().item(), td["nested", "y"].sum().item(), torch.stack([td, td])["x"].sum().item(),
         torch.cat([td, td], 0).batch_size[0], td.reshape(2, 2)["x"].shape[1], (td + 1)["x"].sum().item()]  # fmt: skip
net = TensorDictSequential(
    TensorDictModule(same.weights(torch.nn.Linear(3, 5)), in_keys=["x"], out_keys=["hidden"]),
    TensorDictModule(same.weights(torch.nn.Linear(5, 2)), in_keys=["hidden"], out_keys=["out"]),
)
optimizer = torch.optim.Adam(net.parameters(), 0.05)
for _ in range(3):
    optimizer.zero_grad()
    loss = (net(td)["out"] - td["nested", "y"]).square().mean()
    loss.backward()
    optimizer.step()
    found.append(loss.item())


@tensorclass
class Pair:
    first: torch.Tensor
    second: torch.Tensor


pairs = Pair(first=td["x"], second=td["nested", "y"], batch_size=[4])
found += [pairs[0].first.sum().item(), torch.stack([pairs, pairs], 1).second.sum().item()]
params = TensorDictParams(TensorDict.from_module(net[0].module))
found.append(sum(p.numel() for p in params.parameters()))
with params.data.to_module(net[0].module):
    found.append(net[0].module(td["x"]).sum().item())
with tempfile.TemporaryDirectory() as folder:
    td.detach().select("x", ("nested", "y")).memmap(folder)
    found.append(TensorDict.load_memmap(folder)["nested", "y"].sum().item())
same.report(found)
