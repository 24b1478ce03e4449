"""One program under both: who is asked, by which name, with which types, and of what class results are."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity

CALLS = """
x + 1; 1 + x; t + x; x - 1; 1 - x; t - x; x / 2; x**2; 2**x; x // 2; 3 // x; x % 2; 2 % x; x @ x; t @ x; -x; +x; abs(x); x < x
x >= 1; x != x; ~(x > 0); (x > 0) & (x > 0); x[0]; x[x > 0]; t[x > 0]; len(x); bool(x[0, 0]); float(x[0, 0]); 1 in x; x.T; x.mT
x.shape; x.grad; x.dtype; x.requires_grad; x.is_leaf; x.grad_fn; x.data; x.ndim; x.device; x._version; x.layout; x.real; x.nbytes
x.numpy(); x.tolist(); x.clone(); x.detach(); x.to(torch.float64); x.double(); x.size(); x.size(0); x.view(4); x.split(1); x.unbind()
x.max(dim=0); x.add_(1); x.requires_grad_(); torch.cat([t, x]); torch.stack((x, x)); torch.sum(input=x, dim=0); torch.numel(x)
torch.add(t, 1, out=x); torch.add(x, 1, out=t); F.linear(t, x); F.relu(x); F.softmax(x, dim=0); F.mse_loss(x, t); F.mse_loss(t, x)
F.cross_entropy(x, torch.tensor([0, 1])); F.dropout(x, 0.5); torch.einsum("ij,jk", x, x); torch.where(x > 0, x, t); x.norm()
torch.broadcast_tensors(t, x); torch.linalg.cholesky(x + 2 * torch.eye(2)); torch.split(x, 1); torch.ones_like(x); x.new_zeros(2)
torch.is_floating_point(x); torch.nn.Parameter(x); x.__setitem__(0, 1.0); t.__setitem__(0, x[0]); torch.zeros(x.shape); torch.equal(x, t)
x.__iadd__(1); x.__imul__(2); torch.nn.Linear(2, 2)(x); torch.tensordot(x, x); torch.unique(x); x.untyped_storage(); x.is_contiguous()
torch.special.erf(x); torch.fft.fft(x); torch.linalg.norm(x); torch.meshgrid(t[0], x[0], indexing="ij"); x.where(x > 0, t); t.mul(x)
torch.autograd.grad((x.requires_grad_() * 2).sum(), x); x.requires_grad_().sum().backward(); torch.lerp(t, x, 0.5); torch.sort(x)
setattr(x, "grad", t); delattr(x, "grad"); setattr(x, "requires_grad", True); setattr(x, "data", t); [i for i in x]; t.view_as(x)
parameter + x; x + parameter; younger + x; x + younger; torch.stack([other, parameter]); torch.add(x, other); x + other; mode(x)
torch.add(t, o); torch.clone(o); t + o; t * o; t @ o; torch.stack([t, o]); F.relu(o); F.linear(t, o); t.add(o)
torch.add(x, o); torch.exp(o, out=t); torch.cat((t, o)); F.mse_loss(t, o); torch.linalg.eigh(o); torch.squeeze(o, dim=0)
torch.linalg.solve_triangular(o, t, upper=True); torch.diagonal(o, dim1=-1, dim2=-2); torch.logdet(o); torch.inverse(o)
"""  # fmt: skip
PROGRAM = [call.strip() for call in CALLS.replace("\n", ";").split(";") if call.strip()]


def names(lib: Any, log: list[Any]) -> dict[str, Any]:
    """What the program uses, of one library: functions that are asked go into `log`."""

    class Logged(lib.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            name = (
                "" if func.__name__ in ("grad", "__delete__") else lib.overrides.resolve_name(func)
            )  # nameless in PyTorch
            name = name.replace("torch.functional.", "torch.")
            log.append((name, func.__name__, [t.__name__ for t in types]))
            return super().__torch_function__(func, types, args, kwargs)

    class Younger(Logged):
        pass

    class Other(lib.Tensor):
        pass

    class Like:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            log.append((func.__name__, [t.__name__ for t in types]))
            return func.__name__

    class Mode(lib.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            log.append((lib.overrides.resolve_name(func), [t.__name__ for t in types]))
            return func(*args, **(kwargs or {}))

    def mode(x: Any) -> Any:
        with Mode():
            return lib.ones(2) + x, x.shape, lib.exp(lib.zeros(2)), lib.arange(3)

    ones = lib.ones(2, 2)
    return {"torch": lib, "F": lib.nn.functional, "t": ones.clone(), "x": ones.as_subclass(Logged), "o": Like(), "mode": mode,
            "younger": ones.as_subclass(Younger), "other": ones.as_subclass(Other),
            "parameter": lib.nn.Parameter(ones)}  # fmt: skip


def outcome(lib: Any, call: str) -> Any:
    """The class of the result or of the error, and the log."""
    log: list[Any] = []
    space = names(lib, log)
    log.clear()
    try:
        result = eval(call, space)
        kind = [type(part).__name__ for part in result] if isinstance(result, (tuple, list)) else type(result).__name__
    except Exception as error:
        kind = type(error).__name__
    return kind, log


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", PROGRAM)
def test_the_same_is_asked(call: str) -> None:
    ours, theirs = outcome(rushlight, call), outcome(torch, call)
    assert str(ours).replace("'Storage'", "'UntypedStorage'") == str(theirs)
