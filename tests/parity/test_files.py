"""Files go both ways between here and PyTorch."""

from __future__ import annotations

import io
import pickle
from collections import OrderedDict

import numpy as np
import pytest

import rushlight
from rushlight.tensor import wrap

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity
DTYPES = ["float16", "bfloat16", "float32", "float64", "complex64", "complex128", "uint8", "int8", "int16", "int32",
          "int64", "uint16", "uint32", "uint64", "bool"]  # fmt: skip


def there(obj, **options):
    """From here to PyTorch."""
    buffer = io.BytesIO()
    rushlight.save(obj, buffer)
    buffer.seek(0)
    return torch.load(buffer, **options)


def here(obj, save_options=None, **options):
    """From PyTorch to here."""
    buffer = io.BytesIO()
    torch.save(obj, buffer, **(save_options or {}))
    buffer.seek(0)
    return rushlight.load(buffer, **options)


def numbers(t):
    return t.to(torch.float32).numpy() if t.dtype == torch.bfloat16 else t.numpy()


OLD = {"_use_new_zipfile_serialization": False}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("save_options", [{}, OLD, {"pickle_protocol": 4}], ids=["zip", "old", "protocol 4"])
def test_every_dtype_from_there(dtype, save_options):
    if save_options is OLD and dtype.startswith("uint") and dtype != "uint8":
        pytest.skip("PyTorch cannot write it")
    x = torch.tensor([[1, 0, 2], [3, 1, 1]]).to(getattr(torch, dtype))
    y = here({"x": x, "t": x.t(), "row": x[1]}, save_options)
    assert y["x"].dtype is getattr(rushlight, dtype)
    assert np.array_equal(y["x"]._array.astype(numbers(x).dtype), numbers(x))
    assert np.array_equal(y["t"]._array, y["x"]._array.T)
    y["row"]._array[0] = 7 if dtype != "bool" else False
    assert np.array_equal(y["x"]._array[1], y["row"]._array)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_to_there(dtype):
    array = np.array([[1, 0, 2], [3, 1, 1]]).astype(getattr(rushlight, dtype).numpy)
    y = there({"x": wrap(array), "t": wrap(array.T), "row": wrap(array[1])})
    assert y["x"].dtype == getattr(torch, dtype)
    assert np.array_equal(numbers(y["x"]), array.astype(numbers(y["x"]).dtype))
    assert y["t"].stride() == (1, 3)
    assert y["row"].untyped_storage().data_ptr() == y["x"].untyped_storage().data_ptr()


PLAIN = {"n": None, "i": [1, 2**40, True], "f": 0.5, "s": "grüße", "b": b"\x00\xff", "set": {1, 2}, "t": (1, (2,)),
         "o": OrderedDict(b=1, a=2)}  # fmt: skip


def test_plain_values_go_both_ways():
    assert here(PLAIN) == PLAIN
    assert here(PLAIN, OLD) == PLAIN
    assert there(PLAIN) == PLAIN


def test_names_of_torch_go_both_ways():
    theirs = here({"size": torch.Size([2, 3]), "dtype": torch.float16, "device": torch.device("cpu")})
    assert theirs == {"size": (2, 3), "dtype": rushlight.float16, "device": rushlight.device("cpu")}
    assert type(theirs["size"]) is rushlight.Size
    ours = there({"size": rushlight.Size([2]), "dtype": rushlight.bfloat16, "device": rushlight.device("cpu")})
    assert ours == {"size": torch.Size([2]), "dtype": torch.bfloat16, "device": torch.device("cpu")}


def test_parameters_and_gradients_go_both_ways():
    p = torch.nn.Parameter(torch.ones(2))
    p.tag = "x"
    leaf = torch.ones(1, requires_grad=True)
    leaf.note = 3
    a, b = here([p, leaf])
    assert type(a) is rushlight.nn.Parameter and a.requires_grad and a.tag == "x"
    assert b.requires_grad and b.note == 3
    q = rushlight.nn.Parameter(wrap(np.ones(2, np.float32)))
    q.tag = "y"
    c, d = there([q, wrap(np.ones((), np.float32)).requires_grad_()])
    assert type(c) is torch.nn.Parameter and c.tag == "y" and d.requires_grad and d.shape == ()


def test_conjugates_and_negatives():
    x = torch.tensor([1 + 2j])
    a, b = here([x.conj(), x.clone().conj().imag])
    assert a._array.tolist() == [1 - 2j]
    assert b._array.tolist() == [-2.0]


@pytest.mark.parametrize("name", ["Adam", "SGD", "LBFGS", "Adafactor"])
def test_a_training_goes_on_on_the_other_side(name):
    """Weights and the optimizer's state, through files, in both directions, with PyTorch's steps afterwards."""
    options = {"momentum": 0.9} if name == "SGD" else {}

    def make(api, start):
        p = api.nn.Parameter(api.from_numpy(start.copy()) if api is torch else wrap(start.copy()))
        return p, getattr(api.optim, name)([p], lr=0.1, **options)

    def step(api, p, optimizer, grad):
        def closure():
            p.grad = api.from_numpy(grad.copy()) if api is torch else wrap(grad.copy())
            return 1.0

        optimizer.step(closure)

    start, *grads = np.random.default_rng(0).standard_normal((5, 3, 2))
    states = {}
    for first, second, carry in ((torch, rushlight, here), (rushlight, torch, there)):
        p, optimizer = make(first, start)
        step(first, p, optimizer, grads[0])
        step(first, p, optimizer, grads[1])
        kept = carry({"p": p, "o": optimizer.state_dict()})
        q, again = make(second, kept["p"].detach().numpy() if second is torch else kept["p"]._array)
        again.load_state_dict(kept["o"])
        step(second, q, again, grads[2])
        step(second, q, again, grads[3])
        states[first] = q.detach().numpy() if second is torch else q._array
    assert np.allclose(states[torch], states[rushlight], rtol=1e-10)


def test_a_state_dict_keeps_its_metadata():
    net = torch.nn.BatchNorm1d(3)
    state = here(net.state_dict())
    assert state._metadata[""] == {"version": 2}
    ours = rushlight.nn.BatchNorm1d(3)
    ours.load_state_dict(state)
    net.load_state_dict(there(ours.state_dict()))


def test_files_on_the_disk(tmp_path):
    rushlight.save({"x": wrap(np.arange(1000.0))}, tmp_path / "ours.pt")
    assert torch.load(tmp_path / "ours.pt", mmap=True)["x"].sum() == 499500
    torch.save({"x": torch.arange(1000.0)}, tmp_path / "theirs.pt")
    assert rushlight.load(tmp_path / "theirs.pt", mmap=True)["x"]._array.sum() == 499500
    torch.save({"x": torch.arange(1000.0)}, tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    assert rushlight.load(tmp_path / "old.pt")["x"]._array.sum() == 499500
    with pytest.raises(RuntimeError, match="mmap"):
        rushlight.load(tmp_path / "old.pt", mmap=True)


def test_damaged_old_files(tmp_path):
    buffer = io.BytesIO()
    torch.save({"x": torch.arange(1000.0), "y": 1}, buffer, _use_new_zipfile_serialization=False)
    whole = buffer.getvalue()
    for length in range(1, len(whole), 97):
        with pytest.raises((RuntimeError, EOFError, pickle.UnpicklingError)):
            rushlight.load(io.BytesIO(whole[:length]))


def test_whole_modules_when_trusted():
    net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU())
    ours = here(net, weights_only=False)
    assert type(ours) is rushlight.nn.Sequential
    assert np.array_equal(ours[0].weight._array, net[0].weight.detach().numpy())


def test_tensors_without_memory():
    found = here(torch.ones(2, 3, device="meta").t())
    assert found.is_meta and found.shape == (3, 2) and found.stride() == (1, 3)


@pytest.mark.filterwarnings(
    "ignore:.*quantiz:DeprecationWarning", "ignore:.*quantiz:UserWarning", "ignore:.*Storage:UserWarning"
)
def test_what_is_not_supported_says_so():
    with pytest.raises(pickle.UnpicklingError, match="a quantized tensor is not supported"):
        here(torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8))
