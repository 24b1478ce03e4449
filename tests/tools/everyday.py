"""Everyday lines as type checkers see them: `make lint` checks this file with mypy, and the tests run it.

A line that is wrong on purpose says which error it expects; a checker that finds none there complains.
"""

from typing import Any, assert_type

from numpy import ndarray

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import Tensor, nn
from rushlight.autograd.function import FunctionCtx
from rushlight.nn.utils import prune
from rushlight.utils.data import DataLoader, Dataset

# Making tensors, and arithmetic
x = torch.randn(3, 4, requires_grad=True)
assert_type(x, Tensor)
assert_type(x.sum() + 1, Tensor)
assert_type(2.0 / (1 - x), Tensor)
assert_type(x[0], Tensor)
assert_type(x.select(0, 1), Tensor)
assert_type(x @ x.T, Tensor)
assert_type(x > 0, Tensor)
assert_type(torch.zeros(2, 3, dtype=torch.float64), Tensor)
assert_type(torch.arange(6).view(2, 3).permute(1, 0), Tensor)
assert_type(torch.cat([x, x], dim=0), Tensor)
assert_type(torch.stack([x, x]).mean((0, 1), keepdim=True), Tensor)
assert_type(torch.where(x > 0, x, 0.0), Tensor)
assert_type(torch.einsum("ij,kj->ik", x, x), Tensor)

# What tensors say of themselves
assert_type(x.shape, torch.Size)
assert_type(x.size(0), int)
assert_type(x.dim(), int)
assert_type(x.dtype, torch.dtype)
assert_type(x.requires_grad, bool)
assert_type(x.is_sparse, bool)
assert_type(x.detach().numpy(), ndarray[Any, Any])
assert_type(torch.float32, torch.dtype)

# Several results
assert_type(x.max(), Tensor)
assert_type(x.max(dim=1).indices, Tensor)
values, order = x.sort(dim=1)
assert_type(values, Tensor)
assert_type(torch.linalg.svd(x).S, Tensor)
assert_type(x.split(2), tuple[Tensor, ...])
assert_type(next(iter(x)), Tensor)

# Results in memory that is there
with torch.no_grad():
    assert_type(torch.exp(x, out=torch.empty(3, 4)), Tensor)
    torch.sort(x, out=(torch.empty(3, 4), torch.empty(3, 4, dtype=torch.int64)))


# Models, losses, optimizers
class Net(nn.Module):
    """Two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Linear(4, 8)
        self.out = nn.Linear(8, 3)

    def forward(self, features: Tensor) -> Tensor:
        return self.out(F.relu(self.hidden(features)))  # type: ignore[no-any-return]  # a called module gives Any


net = Net()
assert_type(net.hidden, nn.Linear)
assert_type(net.hidden.weight, Tensor)
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
loss = F.cross_entropy(net(x), torch.tensor([0, 1, 2]))
assert_type(loss, Tensor)
optimizer.zero_grad()
loss.backward()
optimizer.step()
assert_type(x.grad, Tensor | None)
assert_type(torch.autograd.grad(net(x).sum(), [x]), tuple[Tensor, ...])


@torch.no_grad()
def evaluated(model: nn.Module, batch: Tensor) -> Tensor:
    """What `no_grad` decorates keeps its type."""
    return F.softmax(model(batch), dim=-1)


assert_type(evaluated(net, x), Tensor)
with torch.no_grad(), torch.autograd.set_detect_anomaly(False):
    net.out.bias.zero_()


@torch.compile(mode="max-autotune")
def doubled(batch: Tensor) -> Tensor:
    """What `compile` decorates keeps its type, too."""
    return 2 * batch


assert_type(doubled(x), Tensor)


# Classes of one's own
class Exp(torch.autograd.Function):
    """A function that takes its arguments one by one."""

    @staticmethod
    def forward(ctx: Any, a: Tensor) -> Tensor:
        ctx.save_for_backward(a.exp())
        return a.exp()

    @staticmethod
    def backward(ctx: FunctionCtx, grad: Tensor) -> Tensor:
        result: Tensor = ctx.saved_tensors[0]
        return grad * result


class Logged(Tensor):
    """A tensor that hands on what is done with it."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        return super().__torch_function__(func, types, args, kwargs)


class Pairs(Dataset[tuple[Tensor, int]]):
    """A number and whether it is odd."""

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return torch.tensor(index), index % 2


@torch.library.custom_op("everyday::third", mutates_args=())
def third(a: Tensor) -> Tensor:
    """A third of it."""
    return a / 3


@third.register_fake
def _(a: Tensor) -> Tensor:
    return torch.empty_like(a)


@torch.library.register_fake("everyday::third")
def like(a: Tensor) -> Tensor:
    """What keeps its type under the decorator."""
    return torch.empty_like(a)


Exp.apply(x).sum().backward(), third(x.detach()), x.as_subclass(Logged).sum()
assert_type(like(x), Tensor)
assert_type(DataLoader(Pairs(), batch_size=2), DataLoader[tuple[Tensor, int]])
assert_type(DataLoader([1.0, 2.0]), DataLoader[float])
assert_type(net.state_dict(), dict[str, Any])
assert_type(torch.distributions.Normal(0.0, 1.0).log_prob(x), Tensor)

# What takes more than one kind of thing
nn.Conv2d(1, 2, 3, padding="same")
conv = prune.ln_structured(nn.Conv2d(1, 2, 3), "weight", 0.5, n=float("inf"), dim=0)
conv.stride, nn.utils.weight_norm(nn.Conv2d(1, 2, 3)).stride
torch.nn.grad.conv2d_input((1, 1, 4, 4), torch.ones(2, 1, 3, 3), torch.ones(1, 2, 2, 2), stride=(1, 1))
torch.func.functional_call(net, dict(net.named_parameters()), (x,))
torch.func.jvp(lambda a: {"y": a * 2}, (x.detach(),), (x.detach(),))[0]["y"]
torch.testing.assert_close([1.0, 2.0], [1.0, 2.0])
nn.Unflatten(1, [2, 2])(x)
torch.distributions.Categorical(logits=torch.zeros(2, 3)).probs.sum()

# Memory
assert_type(torch.memory.peak(), int)
handle = torch.optim.in_backward(optimizer)
with torch.memory.budget(torch.memory.current() + 2**20):
    net(x).sum().backward()
handle.remove()


def wrong() -> None:
    """What is no name, no argument and no type of it is an error."""
    x.summ()  # type: ignore[attr-defined]
    torch.summ(x)  # type: ignore[attr-defined]
    F.rellu(x)  # type: ignore[attr-defined]
    x.sum(dims=1)  # type: ignore[call-arg]
    torch.cat(x, dim="rows")  # type: ignore[arg-type]
    count: int = x.sum()  # type: ignore[assignment]
    print(count)
