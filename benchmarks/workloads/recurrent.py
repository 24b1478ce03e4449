"""Recurrent layers and loops."""

from typing import Any

from workloads.registry import Step, classifying, equal, integers, normal, training, workload


def last(torch: Any, layer: Any, width: int) -> Any:
    class Reader(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.head = layer, torch.nn.Linear(width, 10)

        def forward(self, x: Any) -> Any:
            return self.head(self.layer(x)[0][:, -1])

    return Reader()


def reading(torch: Any, layer: Any, width: int) -> Step:
    adam = lambda model: torch.optim.Adam(model.parameters(), lr=1e-3)  # noqa: E731
    return classifying(torch, last(torch, layer, width), normal(torch, 16, 64, 128), 10, adam)


@workload()
def lstm(torch: Any) -> Step:
    """LSTM of 2 layers, width 256, 16 x 64 steps, Adam"""
    return reading(torch, torch.nn.LSTM(128, 256, 2, batch_first=True), 256)


@workload()
def lstm_bidirectional(torch: Any) -> Step:
    """LSTM in both directions, width 128, 16 x 64 steps, Adam"""
    return reading(torch, torch.nn.LSTM(128, 128, batch_first=True, bidirectional=True), 256)


@workload()
def gru(torch: Any) -> Step:
    """GRU of width 256, 16 x 64 steps, Adam"""
    return reading(torch, torch.nn.GRU(128, 256, batch_first=True), 256)


@workload()
def rnn(torch: Any) -> Step:
    """Elman network of width 256, 16 x 64 steps, Adam"""
    return reading(torch, torch.nn.RNN(128, 256, batch_first=True), 256)


@workload()
def lstm_packed(torch: Any) -> Step:
    """LSTM on packed sequences of 8 to 64 steps, width 128, batch 16, Adam"""
    nn = torch.nn
    model = equal(nn.LSTM(64, 128, batch_first=True))
    x, lengths = normal(torch, 16, 64, 64), torch.linspace(64, 8, 16).long()

    def loss() -> Any:
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True)
        return nn.utils.rnn.pad_packed_sequence(model(packed)[0], batch_first=True)[0].square().mean()

    return training(torch, model, loss, torch.optim.Adam(model.parameters(), lr=1e-3))


@workload()
def lstm_cells(torch: Any) -> Step:
    """LSTMCell called 32 times, width 128, batch 32, Adam"""
    nn = torch.nn
    model = equal(nn.LSTMCell(64, 128))
    x = normal(torch, 32, 32, 64)

    def loss() -> Any:
        h, c = torch.zeros(32, 128), torch.zeros(32, 128)
        for t in x:
            h, c = model(t, (h, c))
        return h.square().mean()

    return training(torch, model, loss, torch.optim.Adam(model.parameters(), lr=1e-3))


@workload()
def characters(torch: Any) -> Step:
    """A character model: embedding, GRU of 2 layers, width 128, 32 x 50 steps, clipped, Adam"""
    nn, functional = torch.nn, torch.nn.functional
    model = equal(
        nn.ModuleDict(
            {"embed": nn.Embedding(100, 64), "core": nn.GRU(64, 128, 2, batch_first=True), "head": nn.Linear(128, 100)}
        )
    )
    data = integers(torch, 100, 32, 51)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def step() -> Any:
        optimizer.zero_grad()
        h = model["core"](model["embed"](data[:, :-1]))[0]
        loss = functional.cross_entropy(model["head"](h).flatten(0, 1), data[:, 1:].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss

    return step
