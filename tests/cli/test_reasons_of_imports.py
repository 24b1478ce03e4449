"""An import of what is not here says why; who only asks whether it is there is told no."""

import importlib
import importlib.util
import subprocess
import sys

import pytest

import rushlight  # noqa: F401  it is what brings the reasons


@pytest.mark.parametrize("name, reason", [("quantization", "quantized"), ("quantization.fx", "quantized"), ("utils.mobile_optimizer", "TorchScript"),
                                          ("numa", "collectives")])  # fmt: skip
def test_the_reason_is_in_the_error(name: str, reason: str) -> None:
    with pytest.raises(ModuleNotFoundError, match=f"torch.{name.split('.')[0]}.*is not here: .*{reason}") as error:
        importlib.import_module(f"rushlight.{name}")
    assert error.value.name == f"rushlight.{name}" or name == "quantization.fx"


def test_nothing_is_said_of_what_nobody_knows_and_to_who_only_asks() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'rushlight.nonsense'$"):
        importlib.import_module("rushlight.nonsense")
    assert importlib.util.find_spec("rushlight.quantization") is None


def test_under_the_name_torch() -> None:
    code = ("from rushlight.compat import imports; imports.install(); import torch, importlib.util\n"
            "assert importlib.util.find_spec('torch.utils.mobile_optimizer') is None\n"
            "try:\n    import torch.quantization.fx\nexcept ModuleNotFoundError as e:\n    print(e)")  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "torch.quantization.fx" in done.stdout and "quantized tensors" in done.stdout, done.stderr
