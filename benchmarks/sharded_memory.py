"""What each of several processes needs to train ViT-L/16 with Adam: resident memory (VmHWM) above that after the imports.

    rushlight run -n 4 benchmarks/sharded_memory.py [--way ddp] [--batch 1]

With `fully_shard` the model is made on the device meta, dealt, and then gets memory for its parts alone.
"""

import argparse
import time
from typing import Any

import torch
import torch.distributed as dist
from memory import resident
from rushlight import memory
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel
from torchvision.models import vit_l_16


def built(way: str) -> Any:
    """The model: in DistributedDataParallel, or dealt block by block."""
    if way == "ddp":
        return DistributedDataParallel(vit_l_16())
    with torch.device("meta"):
        net = vit_l_16()
    for block in net.encoder.layers:
        fully_shard(block)
    fully_shard(net).to_empty(device="cpu")
    with torch.no_grad():
        for p in net.parameters():
            p.to_local().normal_(std=0.02)
    return net


def main() -> None:
    """Print the peaks of all processes, and the last step's seconds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--way", choices=["ddp", "fully_shard"], default="fully_shard")
    parser.add_argument("--batch", type=int, default=1, help="images in each process")
    parser.add_argument("--steps", type=int, default=3)
    given = parser.parse_args()
    dist.init_process_group("gloo")
    dist.all_reduce(torch.ones(1))
    before = resident("VmRSS")
    net = built(given.way)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-4)
    torch.optim.in_backward(optimizer)
    images, labels = torch.randn(given.batch, 3, 224, 224), torch.randint(1000, (given.batch,))
    for _ in range(given.steps):
        start = time.perf_counter()
        torch.nn.functional.cross_entropy(net(images), labels).backward()
        took = time.perf_counter() - start
    found = [None] * dist.get_world_size()
    dist.all_gather_object(found, (resident("VmHWM") - before, memory.peak()))
    if dist.get_rank() == 0:
        print(f"{given.way}, {len(found)} processes, {given.batch} images each; {took:.1f} s a step; GB of each, resident above "
              f"imports and counted: {[(round(a / 1e9, 3), round(b / 1e9, 3)) for a, b in found]}")  # fmt: skip
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
