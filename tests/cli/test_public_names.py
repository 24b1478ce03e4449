"""Under ``rushlight run`` modules, classes and devices are what PyTorch's users know them as."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import rushlight as torch


def run(folder: Path, script: str, *options: str) -> str:
    (folder / "script.py").write_text(textwrap.dedent(script))
    command = [sys.executable, *options, "-m", "rushlight", "run", "script.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_top_classes_are_of_the_package_itself() -> None:
    for kind in (torch.Tensor, torch.Size, torch.dtype, torch.device, torch.Generator):
        assert kind.__module__ == "rushlight"
    assert torch.__name__ == "rushlight"


def test_modules_and_classes_say_torch(tmp_path: Path) -> None:
    script = """
        import torch
        from torch import sub
        print(torch.__name__, torch.nn.functional.__name__, torch.linalg.__name__, torch.utils.data.__name__)
        print(torch.Tensor.__module__, torch.dtype.__module__, torch.device.__module__, torch.Size.__module__)
        print(str(type(torch.ones(1))), torch.typename(torch.nn.Linear(1, 1)), torch.optim.Adam.__module__)
        print(torch.nn.functional.relu.__module__, sub is torch.sub)
    """
    assert run(tmp_path, script).splitlines() == [
        "torch torch.nn.functional torch.linalg torch.utils.data",
        "torch torch torch torch",
        "<class 'torch.Tensor'> torch.nn.modules.linear.Linear torch.optim.adam",
        "torch.nn.functional True",
    ]


def test_functions_of_our_own_rooms_are_of_the_module_that_has_them(tmp_path: Path) -> None:
    script = """
        import pickle, torch, torch.utils.checkpoint
        for fn in (torch.utils.checkpoint.checkpoint, torch.get_default_dtype, torch.manual_seed, torch.is_grad_enabled):
            assert pickle.loads(pickle.dumps(fn)) is fn
            print(fn.__module__)
    """
    assert run(tmp_path, script).split() == ["torch.utils.checkpoint", "torch", "torch", "torch"]


def test_what_is_named_so_can_be_pickled(tmp_path: Path) -> None:
    script = """
        import io, pickle, torch
        for thing in (torch.ones(2), torch.float32, torch.device("cpu"), torch.Size([1]), torch.nn.functional.relu,
                      torch.nn.Linear(2, 1), torch.optim.SGD):
            assert type(pickle.loads(pickle.dumps(thing))) is type(thing)
        file = io.BytesIO()
        torch.save(torch.nn.Sequential(torch.nn.Linear(2, 1)), file)
        file.seek(0)
        print(torch.load(file, weights_only=False))
    """
    assert "Linear(in_features=2, out_features=1, bias=True)" in run(tmp_path, script)


def test_no_warning_of_numpy_reaches_the_script(tmp_path: Path) -> None:
    script = """
        import torch
        zero = torch.zeros(1)
        print(1 / zero, torch.log(zero), torch.nn.functional.normalize(zero, p=0.5, dim=0))
        print(torch.distributions.Normal(zero, zero, validate_args=False).log_prob(zero))
        (zero.requires_grad_() / 0).backward()
    """
    assert run(tmp_path, script, "-W", "error::RuntimeWarning").startswith("tensor([inf]) tensor([-inf])")


def test_a_device_keeps_its_name_and_its_memory_is_the_cpus(tmp_path: Path) -> None:
    script = """
        import torch
        gpu = torch.device("cuda:1")
        print(gpu, repr(gpu), gpu.type, gpu.index, gpu == torch.device("cpu"), gpu == torch.device("cuda", 1))
        print(torch.ones(1, device=gpu).device, torch.ones(1).to(gpu).device, torch.nn.Linear(1, 1).to(gpu).weight.device)
        with gpu:
            print(torch.ones(1).device)
        torch.save(torch.ones(1), "x.pt")
        print(torch.load("x.pt", map_location=gpu).device, torch.Generator(gpu).device)
    """
    assert run(tmp_path, script).splitlines() == [
        "cuda:1 device(type='cuda', index=1) cuda 1 False True",
        "cpu cpu cpu",
        "cpu",
        "cpu cuda:1",
    ]


def test_devices_of_other_makers_can_be_named_and_have_no_memory() -> None:
    assert torch.device("mps").type == "mps" and torch.device("xpu:0") != torch.device("cpu")
    with pytest.raises(RuntimeError, match="cannot be made on device 'mps'"):
        torch.ones(1, device="mps")
    with pytest.raises(RuntimeError, match="Expected one of cpu, cuda"):
        torch.device("gpu")


def test_what_is_not_here_is_left_to_other_finders(tmp_path: Path) -> None:
    script = """
        import importlib.util, sys, types
        import torch
        assert importlib.util.find_spec("torch.foo") is None
        sys.modules["torch.foo"] = types.ModuleType("torch.foo")
        sys.modules["torch.foo"].__path__ = []
        assert importlib.util.find_spec("torch.foo.bar") is None
        assert importlib.util.find_spec("torch.nn.functional") is not None
        sys.modules["torch.foo.bar"] = types.ModuleType("torch.foo.bar")
        import torch.foo.bar as bar
        print(bar.__name__)
    """
    assert run(tmp_path, script) == "torch.foo.bar\n"


def test_names_that_packages_import_where_distributed_is_available(tmp_path: Path) -> None:
    script = """
        import torch.distributed as dist
        from torch.distributed.checkpoint import load_state_dict, save_state_dict
        from torch.distributed.checkpoint.format_utils import _EmptyStateDictLoadPlanner
        from torch.distributed.fsdp import FullyShardedDataParallel, OptimStateKeyType
        from torch.distributed.fsdp.wrap import _or_policy, enable_wrap
        from torch.distributed.tensor.experimental._attention import set_rotate_method
        from torch.distributed.tensor.placement_types import _StridedShard
        try:
            _StridedShard(0)
        except NotImplementedError as error:
            print(dist.is_available(), dist.is_initialized(), "_StridedShard" in str(error))
    """
    assert run(tmp_path, script) == "True False True\n"


def test_completion_shows_what_is_loaded_on_use():
    assert {"nn", "optim", "memory", "save", "vmap", "randn", "float32"} <= set(dir(torch))
    for room in (torch, torch.memory, torch.stores, torch.optim, torch.nn, torch.autograd, torch.func):
        assert set(room.__all__) <= set(dir(room)), room.__name__
    for own in (torch.memory, torch.stores):
        assert {name for name in dir(own) if not name.startswith("__")} == set(own.__all__), own.__name__


def test_classes_say_the_module_that_they_are_known_by_and_are_found_there(tmp_path: Path) -> None:
    script = """
        import importlib, pickle
        import torch
        from rushlight.compat.homes import HOMES
        for (own, name), home in HOMES.items():
            there = getattr(importlib.import_module(home), name)
            assert there is getattr(importlib.import_module(own), name), name
            assert there.__module__ == home, (name, there.__module__)
        cell = torch.nn.GRUCell(2, 2)
        assert torch.typename(cell) == "torch.nn.modules.rnn.GRUCell"
        assert pickle.loads(pickle.dumps(torch.optim.lr_scheduler.StepLR)) is torch.optim.lr_scheduler.StepLR
        torch.save(cell, "cell.pt")
        assert type(torch.load("cell.pt", weights_only=False)) is torch.nn.GRUCell
        print(torch.optim.AdamW.__module__, torch.no_grad.__module__, torch.memory_format.__module__)
    """
    assert run(tmp_path, script).split() == ["torch.optim.adamw", "torch.autograd.grad_mode", "torch"]
    assert torch.nn.GRUCell.__module__ == "rushlight.nn.modules.rnn_cells"
