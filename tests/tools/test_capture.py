"""A captured step gives the bits of a plain one, and a plan's places hold what lies there for as long as it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tools import capture

import rushlight as torch
from rushlight import nn

F = nn.functional


class Net(nn.Module):
    """A layer that is used twice, a sum of two ways, a view, a norm."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.twice, self.last = nn.Linear(64, 16), nn.Linear(16, 16), nn.Linear(16, 10)
        self.norm = nn.LayerNorm(16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = torch.tanh(self.first(x))
        h = h + F.silu(self.twice(h))
        h = self.norm(h * self.twice(h))
        return self.last(h.view(-1, 2, 8).flatten(1))


def convolutional() -> nn.Module:
    return nn.Sequential(nn.Unflatten(1, (1, 8, 8)), nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                         nn.Linear(64, 10))  # fmt: skip


NETS: dict[str, Callable[[], nn.Module]] = {
    "perceptron": lambda: capture.network(16),
    "shared": Net,
    "convolutional": convolutional,
}


def twins(make: Callable[[], nn.Module]) -> tuple[nn.Module, nn.Module]:
    torch.manual_seed(0)
    one = make()
    other = make()
    other.load_state_dict(one.state_dict())
    return one, other


def trained(net: nn.Module, optimizer: Any, data: list[tuple[Any, Any]]) -> list[float]:
    losses = []
    for x, y in data:
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("name", NETS)
@pytest.mark.parametrize("optimizer", ["Adam", "SGD", "RMSprop"])
def test_losses_are_those_of_plain_training_to_the_bit(name: str, optimizer: str) -> None:
    one, other = twins(NETS[name])
    plain, its = (getattr(torch.optim, optimizer)(net.parameters(), lr=0.01) for net in (one, other))
    data = capture.batches(5, 12)
    program = capture.capture(other, F.cross_entropy, its, *data[0])
    assert [program.run(x.numpy(), y.numpy()) for x, y in data] == trained(one, plain, data)
    assert all(torch.equal(p, q) for p, q in zip(one.parameters(), other.parameters(), strict=True))


@pytest.mark.parametrize("name", NETS)
def test_values_at_the_places_of_a_plan_are_whole_when_they_are_read(name: str) -> None:
    """Each value is copied to its place in one buffer, and read from there."""
    one, other = twins(NETS[name])
    plain, its = (torch.optim.Adam(net.parameters(), lr=0.01) for net in (one, other))
    data = capture.batches(3, 12)
    program = capture.capture(other, F.cross_entropy, its, *data[0])
    planned = capture.plan(program)
    buffer = np.zeros(planned.size, np.uint8)

    def placed(run: Callable[[Any], None], call: Any) -> Callable[[Any], None]:
        def moved(values: Any) -> None:
            run(values)
            for slot in call.writes():
                made = values[slot.number]
                if slot in planned.places and isinstance(made, np.ndarray):
                    at = planned.places[slot]
                    there = buffer[at : at + made.nbytes].view(made.dtype).reshape(made.shape)
                    there[...] = made.copy()
                    values[slot.number] = there

        return moved

    for call in program.calls:
        call.run = placed(call.run, call)
    assert [program.run(x.numpy(), y.numpy()) for x, y in data] == trained(one, plain, data)
    assert planned.least <= planned.size <= 1.2 * planned.least


@pytest.mark.parametrize("name", NETS)
def test_shapes_are_those_that_a_run_makes_and_that_the_records_say(name: str) -> None:
    net = NETS[name]()
    data = capture.batches(1, 12)[0]
    program = capture.capture(net, F.cross_entropy, torch.optim.SGD(net.parameters()), *data)
    seen = []

    def looked_at(run: Callable[[Any], None], call: Any) -> Callable[[Any], None]:
        def look(values: Any) -> None:
            run(values)
            seen.append(call.name)
            assert [np.shape(values[s.number]) for s in call.writes()] == [
                program.made[s.number].shape for s in call.writes()
            ]
            if isinstance(call, capture.Forward) and call.op.made is not None:
                operands = [program.made[x.number] if isinstance(x, capture.Slot) else x for x in call.operands]
                said = call.op.made(operands, call.statics)
                if said is None:  # it depends on the memory behind the operand whether there is a view
                    assert call.op.view, call.name
                    return
                made = [program.made[s.number] for s in call.writes()]
                assert [x[:2] for x in said] == [(x.shape, x.dtype) for x in made]

        return look

    for call in program.calls:
        call.run = looked_at(call.run, call)
    program.run(*(x.numpy() for x in data))
    assert len(seen) == len(program.calls)


@pytest.mark.parametrize(("layer", "said"), [
    (nn.Dropout(0.5), "dropout"), (nn.ReLU(inplace=True), "relu changes a tensor in place"),
])  # fmt: skip
def test_what_cannot_be_captured_is_refused(layer: nn.Module, said: str) -> None:
    net = nn.Sequential(nn.Linear(64, 10), layer)
    with pytest.raises(NotImplementedError, match=f"capture: .*{said}"):
        capture.capture(net, F.cross_entropy, torch.optim.SGD(net.parameters()), *capture.batches(1, 12)[0])


def test_a_tensor_that_nobody_gave_is_refused() -> None:
    net, mask = nn.Linear(64, 10), torch.ones(10)
    with pytest.raises(NotImplementedError, match="mul reads a tensor that no operator made"):
        capture.capture(lambda x: net(x) * mask, F.cross_entropy, torch.optim.SGD(net.parameters()),
                        *capture.batches(1, 12)[0])  # fmt: skip


def test_the_program_says_what_it_found(capsys: pytest.CaptureFixture[str]) -> None:
    assert capture.main(["--width", "16", "--batch", "8", "--steps", "3", "--calls"]) == 0
    out = capsys.readouterr().out
    assert "losses are the same to the bit" in out
    assert "cross_entropy'" in out
