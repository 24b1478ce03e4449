"""What scripts say at the top of torch about devices and settings, where there is no GPU."""

from typing import Any

import pytest

import rushlight as torch


def test_cuda_answers_questions() -> None:
    cuda = torch.cuda
    assert not cuda.is_available() and not cuda.is_initialized() and not cuda.is_bf16_supported()
    assert cuda.device_count() == cuda.memory_allocated() == cuda.max_memory_allocated() == 0
    assert cuda.memory_reserved() == cuda.max_memory_reserved() == 0
    cuda.manual_seed(1), cuda.manual_seed_all(1), cuda.empty_cache(), cuda.ipc_collect(), cuda.reset_peak_memory_stats()
    assert torch.version.cuda is None


@pytest.mark.parametrize(
    "call", ["current_device", "set_device", "synchronize", "get_device_name", "get_device_capability", "mem_get_info"]
)
def test_cuda_refuses_what_needs_a_device(call: str) -> None:
    arguments = (0,) if call == "set_device" else ()
    with pytest.raises(RuntimeError, match="no CUDA device"):
        getattr(torch.cuda, call)(*arguments)


@pytest.mark.parametrize("kind", ["cuda", "mps", "xpu", "mtia"])
def test_devices_are_asked_as_seeding_does_it(kind: str) -> None:
    """Functions that seed everything first ask each kind of device whether this process was forked from one that used it."""
    room = getattr(torch, kind)
    assert room._is_in_bad_fork() is False
    room.manual_seed(1)


def test_libraries_make_sure_of_a_device_by_lazy_init() -> None:
    with pytest.raises(RuntimeError, match="no CUDA device"):
        torch.cuda._lazy_init()


def test_settings_are_kept() -> None:
    cudnn = torch.backends.cudnn
    with cudnn.flags(enabled=False, benchmark=True):
        assert cudnn.benchmark and not cudnn.enabled
    assert not cudnn.benchmark and cudnn.enabled
    assert not cudnn.is_available() and cudnn.version() is None
    assert not torch.backends.cuda.is_built() and not torch.backends.mkl.is_available()
    assert not torch.backends.mps.is_built() and not torch.backends.mkldnn.is_available()
    assert torch.backends.cpu.get_cpu_capability() in ("AVX512", "AVX2", "DEFAULT")
    assert torch.backends.openmp.is_available() in (True, False)
    assert not torch.backends.opt_einsum.is_available()


def test_precision_and_determinism_are_accepted() -> None:
    assert torch.get_float32_matmul_precision() == "highest"
    torch.set_float32_matmul_precision("high")
    assert torch.get_float32_matmul_precision() == "high"
    torch.set_float32_matmul_precision("highest")
    with pytest.raises(ValueError, match="precision"):
        torch.set_float32_matmul_precision("low")
    torch.use_deterministic_algorithms(True, warn_only=True)
    assert torch.are_deterministic_algorithms_enabled() and torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(False)
    assert not torch.are_deterministic_algorithms_enabled()


def test_threads() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    assert torch.get_num_threads() == 1
    torch.set_num_threads(before)
    with pytest.raises(RuntimeError, match="positive"):
        torch.set_num_threads(0)
    with pytest.warns(UserWarning, match="no effect"):
        torch.set_num_interop_threads(2)
    assert torch.get_num_interop_threads() == 2


def test_what_is_compiled_runs_as_it_is() -> None:
    def function(x: int) -> int:
        """Doubles."""
        return 2 * x

    for compiled in (torch.compile(function), torch.compile(mode="default")(function)):
        assert compiled(3) == 6 and compiled.__doc__ == "Doubles." and compiled._torchdynamo_orig_callable is function
    assert torch.compile(function, disable=True) is function
    with pytest.warns(UserWarning, match="is not called: programs run as they are"):
        torch.compile(function, backend=lambda gm, inputs: gm)


def test_autocast_switched_off() -> None:
    with torch.autocast("cpu", enabled=False), torch.amp.autocast("cuda", enabled=False):
        assert (torch.ones(1) * 2).dtype is torch.float32
    with pytest.warns(UserWarning, match="CUDA is not available"):
        torch.autocast("cuda", dtype=torch.float16)
    with pytest.warns(UserWarning, match="CUDA is not available"):
        decorate = torch.cuda.amp.autocast()
    assert decorate(lambda x: x + 1)(1) == 2
    with pytest.warns(UserWarning, match="expected dtype torch.bfloat16"), torch.autocast("cpu", dtype=torch.float64):
        assert (torch.ones(1, 1) @ torch.ones(1, 1)).dtype is torch.float32
    with pytest.raises(RuntimeError, match="device_type"):
        torch.autocast("tpu")
    assert torch.amp.is_autocast_available("cpu") and not torch.amp.is_autocast_available("cuda")


def test_autocast_answers_that_it_is_off() -> None:
    assert not torch.is_autocast_enabled() and not torch.is_autocast_enabled("cpu")
    assert not torch.is_autocast_cpu_enabled() and torch.is_autocast_cache_enabled()
    assert torch.get_autocast_dtype("cpu") is torch.get_autocast_cpu_dtype() is torch.bfloat16
    assert torch.get_autocast_dtype("cuda") is torch.get_autocast_gpu_dtype() is torch.float16
    assert torch.clear_autocast_cache() is None
    for ask in (torch.is_autocast_enabled, torch.get_autocast_dtype):
        with pytest.raises(RuntimeError, match="got 'tpu'"):
            ask("tpu")


def custom(fwd: Any, bwd: Any) -> Any:
    """A custom function with these decorators."""

    class Double(torch.autograd.Function):
        @staticmethod
        @fwd
        def forward(ctx: Any, x: Any) -> Any:
            """Twice the input, which is still of its own dtype."""
            assert not ctx._fwd_used_autocast and x.dtype is torch.float32
            return x * 2

        @staticmethod
        @bwd
        def backward(ctx: Any, grad: Any) -> Any:
            """Twice the gradient."""
            return grad * 2

    return Double


def test_custom_functions_decorated_for_autocast() -> None:
    amp, cuda = torch.amp, torch.cuda.amp
    half = torch.float16
    for fwd, bwd in (
        (amp.custom_fwd(device_type="cuda"), amp.custom_bwd(device_type="cuda")),
        (amp.custom_fwd(device_type="cpu", cast_inputs=half), amp.custom_bwd(device_type="cpu")),
        (cuda.custom_fwd, cuda.custom_bwd),
        (cuda.custom_fwd(cast_inputs=half), cuda.custom_bwd()),
    ):
        x = torch.ones(2, requires_grad=True)
        custom(fwd, bwd).apply(x).sum().backward()
        assert x.grad.tolist() == [2, 2]
    assert amp.custom_fwd(test_threads, device_type="cpu").__name__ == "test_threads"
    with pytest.raises(ValueError, match="custom_fwd: expected `device_type` of type `str`"):
        amp.custom_fwd(device_type=3)
    with pytest.raises(TypeError, match="device_type"):
        amp.custom_bwd(test_threads)


def test_scaler_switched_off() -> None:
    scaler = torch.cuda.amp.GradScaler(enabled=False)
    weight = torch.ones(1, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=1.0)
    scaler.scale((2 * weight).sum()).backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert weight.item() == -1 and not scaler.is_enabled() and scaler.get_scale() == 1.0
    scaler.load_state_dict(scaler.state_dict())


def test_cuda_fails_outside_of_run() -> None:
    with pytest.raises((RuntimeError, AssertionError)):
        torch.ones(1).cuda()
    with pytest.raises((RuntimeError, AssertionError)):
        torch.ones(1, device="cuda")
    with pytest.raises((RuntimeError, AssertionError)):
        torch.ones(1).to("cuda:0")
