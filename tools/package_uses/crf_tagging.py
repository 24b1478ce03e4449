"""A conditional random field on a recurrent network: likelihoods of tag sequences with masks, and the best of them"""

import same
import torch
from torchcrf import CRF


class Tagger(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gru = torch.nn.GRU(6, 8, batch_first=True, bidirectional=True)
        self.head = torch.nn.Linear(16, 5)
        self.crf = CRF(5, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.gru(x)[0])


net = same.weights(Tagger(), 0.3)
x, tags = same.data(4, 9, 6), same.labels(36, 5).reshape(4, 9)
mask = torch.arange(9) < torch.tensor([[9], [7], [4], [1]])
numbers = same.train(net, lambda m: -m.crf(m(x), tags, mask=mask, reduction="token_mean"), steps=8, lr=0.3)
numbers += net.crf(net(x), tags, mask=mask, reduction="none").tolist()
numbers += [float(tag) for best in net.crf.decode(net(x), mask=mask) for tag in best]
same.report(numbers)
