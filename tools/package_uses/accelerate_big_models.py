"""A model made without memory, filled from a file part by part, run with its weights on disk or elsewhere by hooks"""

import tempfile

import accelerate
import same
import torch
from accelerate.hooks import add_hook_to_module, remove_hook_from_module
from safetensors.torch import save_file


class Net(torch.nn.Module):
    """Layers, one shared."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(4, 8)
        self.blocks = torch.nn.ModuleList(
            torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.LayerNorm(8), torch.nn.GELU()) for _ in range(3)
        )
        self.last = torch.nn.Linear(8, 2)

    def forward(self, x):
        x = self.first(x)
        for block in self.blocks:
            x = block(x) + x
        return self.last(x)


x, whole = same.data(6, 4), same.weights(Net()).eval()
with torch.no_grad():
    found = [whole(x).sum().item()]
with accelerate.init_empty_weights():
    empty = Net()
found.append(sum(p.is_meta for p in empty.parameters()))
sizes = accelerate.utils.compute_module_sizes(empty)
found += [sizes[""], sizes["blocks.1"]]
devices = accelerate.infer_auto_device_map(empty, max_memory={"cpu": 700}, no_split_module_classes=["Sequential"])
found += [list(devices.values()).count("cpu"), list(devices.values()).count("disk")]
with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as offload:
    save_file(whole.state_dict(), f"{folder}/model.safetensors")
    model = accelerate.load_checkpoint_and_dispatch(empty, folder, device_map=devices, offload_folder=offload).eval()
    with torch.no_grad():
        found += [model(x).sum().item(), model(x[:3]).sum().item()]
    again = accelerate.disk_offload(same.weights(Net()).eval(), f"{offload}/all", execution_device=torch.device("cpu"))
    with torch.no_grad():
        found.append(again(x).sum().item())


class Doubling(accelerate.hooks.ModelHook):
    """Doubles what a module gives."""

    def post_forward(self, module, output):
        return output * 2


add_hook_to_module(whole.last, Doubling())
loss = whole(x).square().mean()
loss.backward()
found += [loss.item(), whole.first.weight.grad.abs().sum().item()]
remove_hook_from_module(whole.last)
with torch.no_grad():
    found.append(whole(x).sum().item())
same.report(found)
