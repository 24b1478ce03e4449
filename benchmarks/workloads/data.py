"""Loading of data."""

from typing import Any

import numpy as np

from workloads.registry import Step, workload


def loading(torch: Any, workers: int) -> Step:
    """An epoch over 256 pictures that are decoded, flipped and normalized one by one."""
    stored = np.random.default_rng(0).integers(0, 256, (256, 96, 96, 3), dtype=np.uint8)

    class Pictures(torch.utils.data.Dataset):
        def __len__(self) -> int:
            return len(stored)

        def __getitem__(self, i: int) -> Any:
            x = torch.from_numpy(stored[i]).permute(2, 0, 1).float() / 255
            return (x.flip(2) - 0.5) / 0.25, i % 10

    loader = torch.utils.data.DataLoader(Pictures(), 32, num_workers=workers, persistent_workers=bool(workers))
    return lambda: sum(x.mean() for x, y in loader)


@workload()
def loader(torch: Any) -> Step:
    """DataLoader over 256 pictures of 96 px, in this process"""
    return loading(torch, 0)


@workload()
def loader_workers(torch: Any) -> Step:
    """DataLoader over 256 pictures of 96 px, 2 workers that persist"""
    return loading(torch, 2)
