"""Names that scripts ask for in passing: streams, accelerators, overrides, types."""

from pathlib import Path

import pytest
from tests.processes import printed

import rushlight as torch
from rushlight.basics import devices


def test_a_cuda_stream_needs_a_device() -> None:
    cuda = torch.cuda
    for call in (cuda.Event, cuda.Stream, cuda.current_stream, cuda.default_stream, cuda.get_device_properties):
        with pytest.raises(RuntimeError, match="there is no CUDA device"):
            call()
    with cuda.stream(None):
        pass
    assert issubclass(cuda.OutOfMemoryError, RuntimeError) and torch.OutOfMemoryError is cuda.OutOfMemoryError


def test_events_are_moments_where_cuda_means_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "instead_of_cuda", lambda: None)
    cuda = torch.cuda
    start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
    with pytest.raises(ValueError, match="recorded"):
        start.elapsed_time(end)
    start.record()
    with cuda.stream(cuda.Stream()):
        sum(range(10_000))
    end.record(cuda.current_stream())
    end.synchronize()
    assert end.query() and 0 < start.elapsed_time(end) < 10_000
    with pytest.raises(ValueError, match="enable_timing"):
        cuda.Event().elapsed_time(end)
    stream = cuda.default_stream()
    stream.wait_stream(cuda.Stream())
    stream.wait_event(stream.record_event())
    assert stream.query()


def test_there_is_no_accelerator() -> None:
    accelerator = torch.accelerator
    assert not accelerator.is_available() and accelerator.device_count() == 0
    assert accelerator.current_accelerator() is None and accelerator.current_accelerator(check_available=True) is None
    answered = ("is_available", "device_count", "current_accelerator", "device_index")
    needing = [name for name in accelerator.__all__ if name not in answered]
    for name in needing:
        arguments = (0,) if name.startswith("set_") else ()
        with pytest.raises(RuntimeError, match=rf"torch\.accelerator\.{name}: there is no accelerator"):
            getattr(accelerator, name)(*arguments)
    with accelerator.device_index(None), pytest.raises(RuntimeError, match="device_index: there is no accelerator"):
        accelerator.device_index(0).__enter__()


def test_what_is_like_a_tensor() -> None:
    class Like:
        @classmethod
        def __torch_function__(cls, *arguments: object) -> None: ...

    overrides = torch.overrides
    assert (
        overrides.is_tensor_like(torch.ones(1)) and overrides.is_tensor_like(Like()) and not overrides.is_tensor_like(3)
    )
    assert overrides.has_torch_function([1, Like()]) and not overrides.has_torch_function((torch.ones(1), 3))
    assert overrides.has_torch_function_unary(Like()) and not overrides.has_torch_function_variadic(1, 2)
    assert overrides.is_tensor_method_or_property(torch.Tensor.add) and not overrides.is_tensor_method_or_property(len)


def test_types_for_hints() -> None:
    from rushlight.types import Device, FileLike, Number, _dtype, _size

    assert isinstance(torch.device("cpu"), Device) and isinstance("cpu", Device) and isinstance(1.5, Number)
    assert isinstance(torch.Size([1]), torch.Size) and _dtype is torch.dtype and _size and FileLike


def test_denormal_numbers_stay() -> None:
    assert torch.set_flush_denormal(True) is False


def test_the_names_below_torch_switch_no_subclass_off(tmp_path: Path) -> None:
    """Under the name torch, `_C.TensorBase` is not the class of another library's tensors, which nobody asks."""
    script = tmp_path / "script.py"
    script.write_text(
        "import torch\n"
        "from torch._C import TensorBase\n"
        "class Told(torch.Tensor): pass\n"
        "assert issubclass(Told, TensorBase) and type(torch.ones(2).as_subclass(Told) + 1) is Told\n"
        "class Asked(torch.Tensor):\n"
        "    @classmethod\n"
        "    def __torch_function__(cls, func, types, args=(), kwargs=None):\n"
        "        return func.__name__\n"
        "assert torch.add(torch.ones(2).as_subclass(Asked), 1) == 'add'\n"
        "assert torch.spmm(torch.eye(2).to_sparse(), torch.ones(2, 1)).tolist() == [[1.0], [1.0]]\n"
    )
    printed("-m", "rushlight", "run", str(script))


def test_names_that_lie_below() -> None:
    c = torch._C
    assert (c.Size, c.dtype, c.memory_format, c.layout) == (torch.Size, torch.dtype, torch.memory_format, torch.layout)
    assert isinstance(torch.ones(1), c.TensorBase)
    assert c._VariableFunctions.add(torch.ones(1), 1).tolist() == [2.0]
    with pytest.raises(AttributeError, match="no such operator"):
        _ = c._VariableFunctions.nothing
    assert torch.Storage is torch.FloatStorage
    assert isinstance(torch.ones(1).storage(), torch.Storage)
    assert torch._utils._get_all_device_indices() is None
    assert issubclass(torch.jit.RecursiveScriptModule, torch.jit.ScriptModule)
    assert not isinstance(torch.jit.script(torch.nn.Linear(1, 1)), torch.jit.RecursiveScriptModule)
