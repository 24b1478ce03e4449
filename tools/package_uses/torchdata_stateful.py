"""Loaders that go on where they were saved, in this process and with workers, by key and in turn; and nodes"""

import same
import torch
from torchdata import nodes
from torchdata.stateful_dataloader import StatefulDataLoader


class ByKey(torch.utils.data.Dataset):
    def __len__(self):
        return 20

    def __getitem__(self, i):
        return torch.tensor([float(i)])


class InTurn(torch.utils.data.IterableDataset):
    def __init__(self):
        self.at = 0

    def __iter__(self):
        info = torch.utils.data.get_worker_info()
        first, step = (info.id, info.num_workers) if info else (0, 1)
        for i in range(self.at, 20):
            self.at = i + 1
            if i % step == first:
                yield torch.tensor([float(i)])
        self.at = 0

    def state_dict(self):
        return {"at": self.at}

    def load_state_dict(self, state):
        self.at = state["at"]


def main():
    found = []
    for workers in (0, 2):
        for kind, options in ((ByKey, {"shuffle": True}), (InTurn, {})):
            torch.manual_seed(0)
            loader = StatefulDataLoader(kind(), batch_size=3, num_workers=workers, **options)
            batches = iter(loader)
            found += [x.square().sum().item() for x in (next(batches), next(batches))]
            state = loader.state_dict()
            rest = [x.flatten().tolist() for x in batches]
            again = StatefulDataLoader(kind(), batch_size=3, num_workers=workers, **options)
            again.load_state_dict(state)
            assert [x.flatten().tolist() for x in again] == rest
            found += [x for batch in rest for x in batch]
    torch.manual_seed(0)
    sampled = nodes.Batcher(nodes.SamplerWrapper(torch.utils.data.RandomSampler(range(10))), 3)
    found += [x for batch in nodes.Loader(nodes.Prefetcher(sampled, 2)) for x in batch]
    same.report([float(x) for x in found])


if __name__ == "__main__":
    main()
