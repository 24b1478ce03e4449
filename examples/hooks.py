"""What hooks are for: the size of every gradient as it passes, a gradient changed on its way, activations packed."""

import sys
from collections import Counter

import rushlight as torch
from rushlight import memory, nn

depth = int(sys.argv[1]) if len(sys.argv) > 1 else 12
torch.manual_seed(0)
model = nn.Sequential(*[layer for _ in range(depth) for layer in (nn.Linear(256, 256), nn.Tanh())])
x = torch.randn(512, 256)

print("how much of the gradient arrives at each layer (a tensor hook on each output):")
norms: dict[str, float] = {}


def watch(name: str):
    """A forward hook that puts a tensor hook on the module's output."""

    def after(module: nn.Module, args: tuple, output: torch.Tensor) -> None:
        output.register_hook(lambda gradient: norms.__setitem__(name, gradient.norm().item()))

    return after


handles = [layer.register_forward_hook(watch(f"layer {i:2}")) for i, layer in enumerate(model) if i % 2 == 0]
model(x).square().sum().backward()
largest = max(norms.values())
for name in sorted(norms):
    print(f"  {name}  {norms[name]:9.4f}  {'█' * max(1, round(40 * norms[name] / largest))}")
for handle in handles:
    handle.remove()

print("\na hook that returns something changes what goes on: noise on one parameter's gradient")
weight = model[0].weight
handle = weight.register_hook(lambda gradient: gradient + 0.01 * torch.randn_like(gradient))
before = weight.grad.clone()
weight.grad = None
model(x).square().sum().backward()
print(f"  moved by {(weight.grad - before).norm().item():.4f}")
handle.remove()

print("\na hook after accumulation uses a gradient up as soon as it is complete:")
freed = []


def step(parameter: torch.Tensor) -> None:
    """Plain descent, at once."""
    freed.append(parameter.grad.nbytes)
    with torch.no_grad():
        parameter -= 1e-4 * parameter.grad
    parameter.grad = None


for parameter in model.parameters():
    parameter.grad = None
    parameter.register_post_accumulate_grad_hook(step)
model(x).square().sum().backward()
print(f"  {len(freed)} gradients, {sum(freed) / 1e6:.2f} MB, of which none is left")

print("\nhooks for saved tensors see what is kept for backward, and could put it elsewhere:")
kept: Counter[tuple[int, ...]] = Counter()


def pack(tensor: torch.Tensor) -> torch.Tensor:
    """Count it, and keep it as it is."""
    kept[tuple(tensor.shape)] += 1
    return tensor


before = memory.current()
with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
    loss = model(x).square().sum()
for shape, count in kept.most_common():
    print(f"  {count:3} x {shape}")
print(f"  which is {(memory.current() - before) / 1e6:.2f} MB: results and weights are kept once, whoever saves them")
