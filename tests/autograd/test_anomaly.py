"""Anomaly mode, and the errors that name the operator and the user's line: planted faults are found."""

import re
import subprocess
import sys
import threading

import pytest

import rushlight as torch
from rushlight import autograd
from rushlight.autograd import anomaly_mode

HERE = __file__


def line_of(marker):
    """The line of this file that ends with `# marker`."""
    with open(HERE, encoding="utf-8") as file:
        return next(i for i, line in enumerate(file, 1) if line.rstrip().endswith(f"# {marker}"))


def deep(x):
    for _ in range(5):
        x = x * 1.5
    y = x.sqrt()  # planted nan
    for _ in range(5):
        y = y * 2
    return (y * 0).sum()


def test_a_nan_in_a_deep_operator():
    x = torch.tensor([0.0, 1.0, 4.0], requires_grad=True)
    with autograd.detect_anomaly(), pytest.raises(RuntimeError) as info:
        deep(x).backward()
    text = str(info.value)
    assert text.startswith("Function 'SqrtBackward0' returned nan values in its 0th output")
    assert f'{HERE}", line {line_of("planted nan")}' in text and "x.sqrt()" in text
    assert "argument 'input'" in text and "of shape [3]: 1 of 3, the first at [0]" in text


def test_nothing_is_checked_outside_or_without_check_nan():
    x = torch.zeros(1, requires_grad=True)
    deep(x).backward()
    with autograd.detect_anomaly(check_nan=False):
        deep(x).backward()
    assert not anomaly_mode.is_anomaly_enabled()


def test_infinity_where_asked_for():
    x = torch.zeros(2, requires_grad=True)
    with autograd.detect_anomaly():
        x.log().sum().backward()
    with (
        autograd.detect_anomaly(check_inf=True),
        pytest.raises(RuntimeError, match="'LogBackward0' returned inf values"),
    ):
        x.log().sum().backward()


def test_nested_the_innermost_counts():
    x = torch.zeros(1, requires_grad=True)
    with autograd.detect_anomaly():
        with autograd.detect_anomaly(check_nan=False):
            assert not anomaly_mode.is_anomaly_check_nan_enabled()
            deep(x).backward()
        assert anomaly_mode.is_anomaly_check_nan_enabled()
        with autograd.set_detect_anomaly(False):
            deep(x).backward()
        with pytest.raises(RuntimeError, match="nan"):
            deep(x).backward()
    assert not anomaly_mode.is_anomaly_enabled()


def test_set_detect_anomaly_as_a_function():
    autograd.set_detect_anomaly(True, check_nan=False)
    try:
        assert anomaly_mode.is_anomaly_enabled() and not anomaly_mode.is_anomaly_check_nan_enabled()
    finally:
        autograd.set_detect_anomaly(False)


def test_forward_outside_of_the_mode():
    x = torch.zeros(1, requires_grad=True)
    y = deep(x)
    with autograd.detect_anomaly(), pytest.raises(RuntimeError, match="No forward pass information"):
        y.backward()


def test_second_order_names_the_chain():
    x = torch.tensor([0.0, 1.0], requires_grad=True)
    with autograd.detect_anomaly(check_nan=False):
        y = (x**1.5).sum()  # first forward
        (g,) = torch.autograd.grad(y, x, create_graph=True)
    with autograd.detect_anomaly(), pytest.raises(RuntimeError) as info:
        (g * 0).sum().backward()
    text = str(info.value)
    assert "returned nan" in text and "It was recorded in the backward of PowBackward0" in text
    assert f"line {line_of('first forward')}" in text


class Raises(autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        raise RuntimeError("Some error in backward")


def test_errors_of_a_backward_carry_the_forward_traceback():
    x = torch.rand(2, requires_grad=True)
    with autograd.detect_anomaly(), pytest.raises(RuntimeError) as info:
        out = Raises.apply(x)  # custom forward
        out.sum().backward()
    text = str(info.value)
    assert text.startswith("Some error in backward\nTraceback of forward call that caused the error in RaisesBackward:")
    assert f"line {line_of('custom forward')}" in text


SCRIPT = """
import torch
class Root(torch.nn.Module):
    def forward(self, x):
        return x.sqrt() * 0
with torch.autograd.detect_anomaly():
    Root()(torch.zeros(2, requires_grad=True)).sum().backward()
"""


def test_the_forward_traceback_is_of_the_script_alone(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, "-m", "rushlight", "run", "script.py"]
    text = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100).stderr
    called = text.partition("Traceback of forward call")[2]
    assert [int(x) for x in re.findall(r'File "[^"]*script.py", line (\d+)', called)] == [7, 5] and called.count(
        "File "
    ) == 2


def test_errors_with_other_arguments_get_a_note():
    class Odd(autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            raise KeyError("a", "b")

    x = torch.rand(2, requires_grad=True)
    with autograd.detect_anomaly(), pytest.raises(KeyError) as info:
        Odd.apply(x).sum().backward()
    assert info.value.args == ("a", "b") and "Traceback of forward call" in info.value.__notes__[0]


def test_in_place_on_a_view_has_a_traceback():
    x = torch.zeros(3, requires_grad=True)
    with autograd.detect_anomaly(), pytest.raises(RuntimeError) as info:
        y = x * 1
        y[:2].sqrt_()
        (y * 0).sum().backward()
    assert "sqrt_()" in str(info.value)


def test_inside_vmap():
    x = torch.zeros(3, requires_grad=True)
    with autograd.detect_anomaly(), pytest.raises(RuntimeError, match="SqrtBackward0"):
        torch.func.vmap(torch.func.grad(lambda a: a.sqrt() * 0))(x)


def test_half_precision_and_complex():
    for dtype in (torch.float16, torch.bfloat16, torch.complex64):
        x = torch.zeros(2, dtype=dtype, requires_grad=True)
        with autograd.detect_anomaly(), pytest.raises(RuntimeError, match="nan"):
            y = (x.sqrt() * 0).sum()
            (y.real if y.is_complex() else y).backward()


def test_metadata_holds_the_traceback():
    x = torch.ones(2, requires_grad=True)
    with autograd.detect_anomaly():
        y = x * 2
        (g,) = torch.autograd.grad((y**3).sum(), x, create_graph=True)
    assert any(HERE in line for line in y.grad_fn.metadata["traceback_"])
    assert g.grad_fn.metadata["parent_"] is y.grad_fn


def test_threads_do_not_see_each_others_mode():
    found = []
    with autograd.detect_anomaly():
        thread = threading.Thread(target=lambda: found.append(anomaly_mode.is_anomaly_enabled()))
        thread.start()
        thread.join()
    assert found == [False]


# A saved tensor changed in place ---------------------------------------------------------------------------------


def test_a_saved_tensor_changed_in_place():
    x = torch.ones(3, requires_grad=True)
    y = x.exp()
    z = y * 2 * y
    y.add_(1)
    with pytest.raises(RuntimeError) as info:
        z.sum().backward()
    text = str(info.value)
    assert "[torch.FloatTensor [3]]" in text and "is output 0 of ExpBackward0" not in text.split("which")[0]
    assert "MulBackward0 saved as argument 'other'" in text and "version 1; expected version 0" in text
    assert "It was changed by add_." in text and "clone() the tensor before it (12 bytes)" in text


def test_a_saved_tensor_changed_in_place_under_anomaly_mode():
    x = torch.ones(3, requires_grad=True)
    with autograd.detect_anomaly(), pytest.raises(RuntimeError) as info:
        y = x * 2
        z = y.sin()  # saved here
        y.mul_(3)  # changed here
        z.sum().backward()
    text = str(info.value)
    assert "which is output 0 of" in text and "SinBackward0 saved as argument 'input'" in text
    assert f"changed by mul_ at {HERE}:{line_of('changed here')}" in text
    assert f"line {line_of('saved here')}" in text


def test_changed_through_a_view():
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    z = y.sin()
    y[:1].mul_(2)
    with pytest.raises(RuntimeError, match=r"SinBackward0 saved as argument 'input'.*changed by mul_"):
        z.sum().backward()


# Hooks that raise ------------------------------------------------------------------------------------------------


def notes(info):
    return "\n".join(info.value.__notes__)


def broken(*args):
    raise ValueError("broken hook")


@pytest.mark.parametrize("register", ["register_hook", "register_prehook"])
def test_a_node_hook_that_raises(register):
    x = torch.ones(2, requires_grad=True)
    y = x.exp() * 2
    getattr(y.grad_fn, register)(broken)
    with pytest.raises(ValueError, match="broken hook") as info:
        y.sum().backward()
    assert "MulBackward0" in notes(info) and f"'broken' ({HERE}:" in notes(info)


def test_a_tensor_hook_that_raises():
    x = torch.ones(2, requires_grad=True)
    with autograd.detect_anomaly(), pytest.raises(ValueError, match="broken hook") as info:
        y = x.exp()  # hooked here
        y.register_hook(broken)
        y.sum().backward()
    assert "output 0 of ExpBackward0" in notes(info) and f"line {line_of('hooked here')}" in notes(info)


def test_a_leaf_hook_that_raises_leaves_nothing_behind():
    x = torch.ones(2, requires_grad=True)
    handle = x.register_hook(broken)
    with pytest.raises(ValueError, match="broken hook") as info:
        (x * 2).sum().backward()
    assert "a leaf of shape [2]" in notes(info) and x.grad is None
    handle.remove()
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_saved_tensor_hooks_that_raise():
    x = torch.ones(2, requires_grad=True)
    hooks = torch.autograd.graph.saved_tensors_hooks
    with hooks(broken, lambda t: t), pytest.raises(ValueError, match="broken hook") as info:
        x.exp()
    assert "pack hook for 'out', saved by exp" in notes(info)
    with hooks(lambda t: t, broken):
        y = x.sin()
    with pytest.raises(ValueError, match="broken hook") as info:
        y.sum().backward()
    assert "unpack hook for 'input', saved by sin" in notes(info)


@pytest.mark.parametrize("make", [torch.optim.SGD, torch.optim.Adam, torch.optim.Adafactor, torch.optim.Lion])
def test_a_step_that_changed_what_was_saved_is_named(make) -> None:
    norm = torch.nn.LayerNorm(4)  # its weight was filled with ones: that is not what changed it
    y = norm(torch.ones(2, 4, requires_grad=True)).sum()
    norm.weight.grad = torch.ones(4)
    make([norm.weight], lr=0.1).step()
    with pytest.raises(RuntimeError, match=r"argument 'weight'.* It was changed by the step of an optimizer"):
        y.backward()
