"""Names at the top of torch that packages ask for in passing."""

import pytest

import rushlight as torch


def test_assert_as_a_function() -> None:
    torch._assert(torch.tensor(True), "never")
    with pytest.raises(AssertionError, match="no"):
        torch._assert(False, "no")


def test_one_grad_scaler() -> None:
    assert torch.GradScaler is torch.amp.GradScaler


def test_debug_mode_of_deterministic_algorithms() -> None:
    try:
        for mode, number in (("warn", 1), ("error", 2), (1, 1), ("default", 0)):
            torch.set_deterministic_debug_mode(mode)
            assert torch.get_deterministic_debug_mode() == number
            assert torch.are_deterministic_algorithms_enabled() == (number > 0)
        with pytest.raises(RuntimeError, match="invalid value of debug_mode"):
            torch.set_deterministic_debug_mode(3)
        with pytest.raises(TypeError, match="must be str or int"):
            torch.set_deterministic_debug_mode(1.5)
    finally:
        torch.use_deterministic_algorithms(False)


def test_modules_of_devices() -> None:
    assert torch.get_device_module("cpu") is torch.get_device_module() is torch.cpu
    assert torch.get_device_module("cuda:0") is torch.cuda
    with pytest.raises(RuntimeError, match="no module for the device"):
        torch.get_device_module("mps")


def test_norms_of_matrices_are_deprecated() -> None:
    a = torch.tensor([[3.0, 0.0], [0.0, 4.0]])
    with pytest.warns(UserWarning, match="nuclear_norm is deprecated"):
        assert torch.nuclear_norm(a).item() == pytest.approx(7.0)
    with pytest.warns(UserWarning, match="frobenius_norm is deprecated"):
        assert torch.frobenius_norm(a, dim=[0, 1]).item() == pytest.approx(5.0)


def test_what_the_library_is_made_of() -> None:
    import numpy

    assert f"NumPy {numpy.__version__}" in torch.__config__.show()
    assert f"get_num_threads() : {torch.get_num_threads()}" in torch.__config__.parallel_info()


def test_processes_are_waited_for_by_either_name() -> None:
    for start in (torch.multiprocessing.spawn, torch.multiprocessing.start_processes):
        context = start(divmod, (1,), nprocs=2, join=False)  # divmod(0, 1) and divmod(1, 1)
        assert len(context.processes) == 2
        while not context.join():
            pass


def test_types_and_suffixes_that_packages_import() -> None:
    from rushlight.nn.modules.module import _EXTRA_STATE_KEY_SUFFIX
    from rushlight.serialization import MAP_LOCATION

    class Extra(torch.nn.Module):
        def get_extra_state(self) -> int:
            return 3

    assert list(Extra().state_dict()) == [_EXTRA_STATE_KEY_SUFFIX] and MAP_LOCATION is not None
