"""A vision transformer learns the digits 0 to 4, goes through a safetensors file, and learns 5 to 9 by adapters alone."""

import sys
import tempfile
from pathlib import Path

from safetensors.numpy import load_file, save_file

import rushlight as torch
from rushlight import datasets, memory, nn, optim
from rushlight.models import VisionTransformer
from rushlight.nn.utils import lora

passes = int(sys.argv[1]) if len(sys.argv) > 1 else 6
images, labels = (torch.from_numpy(part) for part in datasets.digits())
images = (images.float() / 16).unsqueeze(1).expand(-1, 3, -1, -1).contiguous()


def vit() -> VisionTransformer:
    """Patches of 2 x 2, of the 8 x 8 images."""
    return VisionTransformer(8, patch_size=2, num_layers=3, num_heads=4, hidden_dim=64, mlp_dim=128, num_classes=5)


def learn(model: nn.Module, first: int, lr: float) -> tuple[float, int]:
    """Train on five digits; accuracy on every fifth image, held out, and the peak above what was there before."""
    chosen = (labels >= first) & (labels < first + 5)
    x, y = images[chosen], labels[chosen] - first
    held_out = torch.arange(len(y)) % 5 == 0
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = optim.AdamW(parameters, lr=lr)
    before = memory.current()
    memory.reset_peak()
    for _ in range(passes):
        for rows in torch.randperm(len(y))[: int((~held_out).sum())].split(64):
            rows = rows[~held_out[rows]]
            loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    peak = memory.peak() - before
    with torch.no_grad():
        right = model(x[held_out]).argmax(1) == y[held_out]
    return right.float().mean().item(), peak


torch.manual_seed(0)
model = vit()
accuracy, peak = learn(model, 0, 3e-3)
count = sum(p.numel() for p in model.parameters())
print(f"0 to 4, all {count:,} parameters: {accuracy:.1%} right, {peak / 1e6:.2f} MB for training")

with tempfile.TemporaryDirectory() as folder:
    file = Path(folder, "digits.safetensors")
    save_file({name: tensor.numpy() for name, tensor in model.state_dict().items()}, file)
    print(f"{file.name}: {file.stat().st_size:,} bytes")
    tuned = vit()
    tuned.load_state_dict({name: torch.from_numpy(array) for name, array in load_file(file).items()})

adapted = lora.apply(tuned, "*.mlp.*", rank=8)  # freezes the rest
for parameter in tuned.heads.parameters():
    parameter.requires_grad_()
accuracy, peak = learn(tuned, 5, 1e-2)
count = sum(p.numel() for p in tuned.parameters() if p.requires_grad)
print(f"5 to 9, {count:,} of adapters in {len(adapted)} layers and the head: {accuracy:.1%} right, {peak / 1e6:.2f} MB")
