"""Sequential, ModuleList, ModuleDict, ParameterList, ParameterDict; Parameter itself."""

import copy
import pickle
from collections import OrderedDict
from typing import Any

import pytest

import rushlight as torch
from rushlight import nn


def kinds(modules: Any) -> list[str]:
    return [type(m).__name__ for m in modules]


def test_sequential_is_a_list() -> None:
    s = nn.Sequential(nn.ReLU(), nn.Tanh(), nn.Sigmoid())
    assert len(s) == 3 and kinds(s[1:]) == ["Tanh", "Sigmoid"] and isinstance(s[-1], nn.Sigmoid)
    del s[1]
    s.append(nn.GELU()).insert(0, nn.Tanh())
    assert kinds(s) == ["Tanh", "ReLU", "Sigmoid", "GELU"] and list(s._modules) == ["0", "1", "2", "3"]
    assert isinstance(s.pop(0), nn.Tanh)
    s[0] = nn.Mish()
    s.extend([nn.ELU()])
    s += nn.Sequential(nn.CELU())
    assert kinds(s) == ["Mish", "Sigmoid", "GELU", "ELU", "CELU"]
    assert len(s * 2) == 10 and len(2 * s) == 10 and kinds(s + s[:1])[-1] == "Mish"
    with pytest.raises(IndexError):
        s[7]
    with pytest.raises(ValueError, match="Sequential"):
        s + [1]  # noqa: RUF005


def test_sequential_calls_one_after_the_other() -> None:
    s = nn.Sequential(OrderedDict(a=nn.Flatten(0), b=nn.Unflatten(0, (2, 2))))
    assert s(torch.arange(4.0)).tolist() == [[0.0, 1.0], [2.0, 3.0]]
    assert s.a is s[0]


def test_module_list() -> None:
    m = nn.ModuleList([nn.ReLU(), nn.Tanh()])
    m += [nn.Sigmoid()]
    m.insert(1, nn.GELU())
    assert kinds(m) == ["ReLU", "GELU", "Tanh", "Sigmoid"] and kinds(m[::2]) == ["ReLU", "Tanh"]
    del m[1:3]
    assert kinds(m) == ["ReLU", "Sigmoid"] and list(m._modules) == ["0", "1"]
    assert kinds(m + nn.ModuleList([nn.ELU()])) == ["ReLU", "Sigmoid", "ELU"]
    assert repr(nn.ModuleList([nn.ReLU(), nn.ReLU()])) == "ModuleList(\n  (0-1): 2 x ReLU()\n)"
    with pytest.raises(TypeError, match="iterable"):
        m.extend(3)


def test_module_dict() -> None:
    d = nn.ModuleDict({"a": nn.ReLU()})
    d.update([("b", nn.Tanh())])
    d["c"] = nn.GELU()
    assert list(d) == ["a", "b", "c"] and "b" in d and kinds(d.values()) == ["ReLU", "Tanh", "GELU"]
    assert isinstance(d.pop("b"), nn.Tanh) and len(d) == 2
    d.clear()
    assert not d.keys()


def test_parameter_list_and_dict() -> None:
    p = nn.ParameterList([torch.ones(1), 3])
    p.append(torch.zeros(2))
    assert [n for n, _ in p.named_parameters()] == ["0", "2"] and p[1] == 3 and len(p[1:]) == 2
    d = nn.ParameterDict({"b": torch.ones(1), "a": torch.ones(2)})
    assert list(d) == ["a", "b"] and all(isinstance(v, nn.Parameter) for v in d.values())
    assert d.get("x", 1) == 1 and d.pop("a").shape == (2,) and list(d.state_dict()) == ["b"]


def test_parameter_shares_memory() -> None:
    x = torch.ones(2)
    p = nn.Parameter(x)
    x.fill_(3)
    assert p.tolist() == [3.0, 3.0] and p.requires_grad and p.is_leaf and not x.requires_grad
    assert repr(p) == "Parameter containing:\ntensor([3., 3.], requires_grad=True)"
    assert type(p + 1) is torch.Tensor and type(p.data) is torch.Tensor
    assert not nn.Parameter(torch.ones(1, dtype=torch.int64), requires_grad=False).requires_grad
    with pytest.raises(RuntimeError, match="requires_grad=False"):
        nn.Parameter(torch.ones(1, dtype=torch.int64))
    with pytest.raises(TypeError, match="must be a Tensor"):
        nn.Parameter([1.0])


def test_parameter_copies() -> None:
    p = nn.Parameter(torch.ones(2), requires_grad=False)
    for q in (copy.deepcopy(p), pickle.loads(pickle.dumps(p))):
        assert type(q) is nn.Parameter and q.tolist() == [1.0, 1.0] and not q.requires_grad
        assert q.data_ptr() != p.data_ptr()


def test_lazy_parameter() -> None:
    p = nn.UninitializedParameter(dtype=torch.float64)
    with pytest.raises(RuntimeError, match="Can't access the shape"):
        p.shape
    assert p.double() is p and p.to("cpu") is p and p.float().dtype is torch.float32
    same = p
    p.materialize((2, 3))
    assert same is p and type(p) is nn.Parameter and p.shape == (2, 3) and p.dtype is torch.float64
    assert p.requires_grad
