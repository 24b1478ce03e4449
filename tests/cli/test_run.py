"""``rushlight run``: scripts written for PyTorch, as they are."""

import pickle
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import rushlight


@pytest.fixture
def run(tmp_path: Path):
    """Runs ``rushlight run`` in an empty folder; ``script`` is written to train.py first."""

    def start(
        *arguments: str, script: str | None = None, status: int = 0, stdin: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        if script is not None:
            (tmp_path / "train.py").write_text(textwrap.dedent(script))
            arguments = ("train.py", *arguments)
        command = [sys.executable, "-m", "rushlight", "run", *arguments]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, input=stdin)
        assert done.returncode == status, done.stderr
        return done

    return start


def test_names_are_one(run) -> None:
    script = """
        import torch
        import torch.nn as nn
        import torch.nn.functional as F
        from torch import optim
        from torch.utils.data import DataLoader, TensorDataset
        from torchvision import models
        from torchvision.models import resnet18, ResNet18_Weights
        import torch.backends.cudnn as cudnn
        import rushlight
        assert torch is rushlight and torch.nn is rushlight.nn and F is rushlight.nn.functional
        assert models is rushlight.models and resnet18 is rushlight.models.resnet18
        assert nn.functional is F and optim.SGD is rushlight.optim.SGD
        assert torch.__spec__.name == "rushlight"
        import sys
        assert sys.modules["torch.nn"] is nn
        cudnn.benchmark = True
        torch.backends.cuda.matmul.allow_tf32 = True
        assert not torch.backends.mps.is_available()
        assert isinstance(nn.Linear(2, 2).weight, torch.nn.Parameter)
        print("one")
    """
    assert run(script=script).stdout == "one\n"


def test_script_runs_as_python_runs_it(run, tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("value = 42\n")
    script = """
        import sys, os
        import helper
        if __name__ == "__main__":
            print(sys.argv, helper.value, os.path.basename(__file__))
            import __main__
            assert __main__.helper is helper and sys.modules["__main__"].__dict__ is globals()
            assert os.path.realpath(sys.path[0]) == os.path.realpath(os.getcwd())
            assert not [name for name in globals() if "rushlight" in name]
    """
    assert run("--lr", "0.1", "-m", script=script).stdout == "['train.py', '--lr', '0.1', '-m'] 42 train.py\n"


def test_the_path_of_a_script_is_absolute(run, tmp_path: Path) -> None:
    script = """
        import os, sys
        print(__file__, sys.argv[0])
        os.chdir("/")
        print(os.path.exists(__file__), __loader__.get_filename("__main__") == __file__)
    """
    assert run(script=script).stdout == f"{tmp_path / 'train.py'} train.py\nTrue True\n"


def test_a_program_on_standard_input(run) -> None:
    program = "import sys, torch; print(torch.ones(1), sys.argv, repr(sys.path[0]), __name__, '__file__' in dir())\n"
    done = run("-", "a", "-b", stdin=program)
    assert done.stdout == "tensor([1.]) ['-', 'a', '-b'] '' __main__ False\n"
    failed = run("-", stdin="\nraise ValueError('no')\n", status=1).stderr.splitlines()
    assert failed[1].strip().startswith('File "<stdin>", line 2') and failed[-1] == "ValueError: no"


def test_module_and_code(run, tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "train.py").write_text("import sys, torch; print(torch.ones(2), sys.argv[1:], __name__)\n")
    assert run("-m", "package.train", "a", "-c").stdout == "tensor([1., 1.]) ['a', '-c'] __main__\n"
    assert run("-c", "import sys, torch; print(torch.zeros(1), sys.argv)", "x").stdout == "tensor([0.]) ['-c', 'x']\n"


def test_training_script(run) -> None:
    script = """
        import argparse
        import torch
        from torch import nn

        parser = argparse.ArgumentParser()
        parser.add_argument("--steps", type=int, default=1)
        options = parser.parse_args()
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        torch.manual_seed(0)
        torch.set_num_threads(2)
        torch.set_float32_matmul_precision("high")
        model = torch.compile(nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1)).to(device))
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        x = torch.randn(64, 4, device=device)
        y = x.sum(1, keepdim=True)
        for step in range(options.steps):
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
        print(f"{loss.item():.6f}", device)
    """
    first, last = (run("--steps", steps, script=script).stdout for steps in ("1", "120"))
    assert float(last.split()[0]) < 0.05 * float(first.split()[0])
    assert last.split()[1] == "cpu"


def test_a_script_for_several_processes_runs_on_one(run) -> None:
    script = """
        import os
        import torch
        import torch.distributed as dist
        import torch.multiprocessing as mp
        from torch.nn.parallel import DistributedDataParallel as DDP
        from torch.testing import assert_close
        from torch.types import Device
        from torch.utils._pytree import tree_map
        from torch.utils.data import DataLoader, TensorDataset
        from torch.utils.data.distributed import DistributedSampler

        @torch.compiler.disable
        def log(*values):
            if dist.get_rank() == 0:
                print(*values)

        def main():
            os.environ.update(RANK="0", WORLD_SIZE="1", MASTER_ADDR="localhost", MASTER_PORT="29500")
            dist.init_process_group(backend="nccl")
            data = TensorDataset(torch.arange(8.0).reshape(4, 2))
            loader = DataLoader(data, batch_size=2, sampler=DistributedSampler(data))
            model = DDP(torch.nn.Linear(2, 1).cuda(), device_ids=[0])
            assert torch.__version__ >= (2, 0)
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            for (x,) in loader:
                model(tree_map(lambda t: t.cuda(), x)).sum().backward()
            end.record()
            loss = torch.ones(())
            dist.all_reduce(loss)
            dist.barrier()
            assert_close(model.module.weight.grad, torch.tensor([[12.0, 16.0]]))
            log(loss.item(), start.elapsed_time(end) > 0, dist.get_world_size())
            dist.destroy_process_group()

        if __name__ == "__main__":
            main()
            mp.spawn(print, args=("from", "another"), nprocs=1)
    """
    done = run(script=script)
    assert sorted(done.stdout.splitlines()) == ["0 from another", "1.0 True 1"]


@pytest.mark.parametrize("way", ["fork", "spawn", "forkserver"])
@pytest.mark.parametrize("early", [True, False])
def test_processes_of_multiprocessing_find_torch(run, way: str, early: bool) -> None:
    script = f"""
        {"import multiprocessing.spawn, multiprocessing.forkserver" if early else ""}
        import torch
        import multiprocessing

        def work(x):
            return x.cuda().double().sum().item() + torch.ones(2).sum().item()

        if __name__ == "__main__":
            with multiprocessing.get_context({way!r}).Pool(2) as pool:
                print(pool.map(work, [torch.zeros(1), torch.ones(3)], chunksize=1))
    """
    done = run(script=script)
    assert done.stdout == "[2.0, 5.0]\n"
    said = "rushlight: no CUDA device: tensors sent to 'cuda' stay on the CPU"
    assert said in done.stderr and not done.stderr.replace(said, "").strip()  # by one process or by both at once


def test_cuda_stays_on_the_cpu(run) -> None:
    script = """
        import torch
        assert not torch.cuda.is_available() and torch.cuda.device_count() == 0
        model = torch.nn.Linear(2, 2).cuda()
        x = torch.ones(2, device="cuda:0").to("cuda")
        print(model(x.cuda()).device, torch.ones(1).cuda().is_cuda)
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
    """
    done = run(script=script)
    assert done.stdout == "cpu False\n"
    assert done.stderr == "rushlight: no CUDA device: tensors sent to 'cuda' stay on the CPU\n"


@pytest.mark.parametrize(
    ("line", "kind", "thing"),
    [
        ("torch.no_such_function(1)", "AttributeError", "torch.no_such_function"),
        ("torch.nn.NoSuchLayer(1)", "AttributeError", "torch.nn.NoSuchLayer"),
        ("torch.ones(1).no_such_method()", "AttributeError", "torch.Tensor.no_such_method"),
        ("from torch.nn import NoSuchLayer", "ImportError", "torch.nn.NoSuchLayer"),
        ("import torch.no_such_module", "ModuleNotFoundError", "torch.no_such_module"),
        ("from torchvision import no_such_module", "ImportError", "torchvision.no_such_module"),
        ("import torchvision.no_such_module", "ModuleNotFoundError", "torchvision.no_such_module"),
    ],
)
def test_what_is_missing_is_named(run, line: str, kind: str, thing: str) -> None:
    done = run(script=f"import torch\n\n{line}\n", status=1)
    told = f"{kind}: {thing} is not implemented by rushlight (asked for at train.py:3)"
    if thing.startswith("torchvision"):
        told += (": without torchvision its models alone are here: `rushlight install-as-torch` and "
                 "`pip install torchvision` bring the rest, and no PyTorch")  # fmt: skip
    assert done.stderr.strip().splitlines()[-2:] == [told, "[rushlight explain missing-name]"]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("nowhere", "No module named nowhere"),
        (
            "no.where",
            "Error while finding module specification for 'no.where' (ModuleNotFoundError: No module named 'no')",
        ),
        ("folder", "No module named folder.__main__; 'folder' is a package and cannot be directly executed"),
    ],
)
def test_a_module_that_cannot_be_run_is_a_line(name: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    command = [sys.executable, "-m", "rushlight", "run", "-m", name]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr == f"rushlight run: {told}\n"


def test_what_a_module_cannot_import_is_its_own_error(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import nowhere\n")
    command = [sys.executable, "-m", "rushlight", "run", "-m", "mine"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1 and 'mine.py", line 1' in done.stderr
    assert done.stderr.endswith("ModuleNotFoundError: No module named 'nowhere'\n")


def test_missing_things_can_be_asked_for(run) -> None:
    script = """
        import importlib.util
        import torch
        print(hasattr(torch, "no_such_function"), importlib.util.find_spec("torch.no_such_module"))
        print(importlib.util.find_spec("torchvision"), importlib.util.find_spec("torch") is not None)
        try:
            import torch.no_such_module
        except ImportError:
            print("falls back")
    """
    assert run(script=script).stdout == "False None\nNone True\nfalls back\n"


def test_a_misspelt_name_is_answered_with_the_one_that_was_meant(run) -> None:
    for line, meant in (
        ("torch.rnd(3)", "rand"), ("torch.nn.Lienar(1)", "Linear"), ("torch.ones(1).summ()", "sum"), ("from torch.nn import Lienar", "Linear"),
        ("import torch.nn.funktional", "functional"), ("torch.nn.Linear(1, 1).wieght", "weight"), ("torch.cuda.is_avalable()", "is_available"),
    ):  # fmt: skip
        told = run(script=f"import torch\n{line}\n", status=1).stderr.splitlines()[-2]
        assert told.endswith(f"; did you mean {meant}?"), told
    with pytest.raises(AttributeError, match="no attribute 'rnd'; did you mean 'rand'") as caught:
        rushlight.rnd
    assert pickle.loads(pickle.dumps(caught.value)).args == (str(caught.value),)


def test_a_script_that_changes_its_folder_keeps_its_lines(run) -> None:
    script = "import inspect, os\n\ndef f():\n    1 / 0\n\nos.chdir('/')\nprint(inspect.getsource(f))\nf()\n"
    done = run(script=script, status=1)
    assert done.stdout.startswith("def f():") and "    1 / 0" in done.stderr.splitlines()


def test_what_to_do_without_memory_is_said(run) -> None:
    told = run(script="import torch\nx = torch.ones(1).expand(10**9)\nx[:, None] * x\n", status=1).stderr
    assert told.splitlines()[-1] == "[rushlight explain out-of-memory]" and "(1000000000, 1000000000)" in told


def test_traceback_shows_the_script_only(run, tmp_path: Path) -> None:
    script = """
        def fail():
            raise ValueError("of the script's own")

        fail()
    """
    lines = run(script=script, status=1).stderr.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[1].strip().startswith(f'File "{tmp_path}/train.py", line 5, in <module>')
    assert lines[-1] == "ValueError: of the script's own"
    assert not [line for line in lines if "rushlight" in line]


def test_traceback_leaves_the_library_out_and_can_show_it(run, monkeypatch, tmp_path: Path) -> None:
    script = """
        import torch

        class Net(torch.nn.Module):
            def forward(self, x):
                return x @ x

        try:
            Net()(torch.ones(2, 3))
        except RuntimeError as error:
            raise ValueError("of the script's own") from error
    """
    told = run(script=script, status=1).stderr
    files = [line for line in told.splitlines() if line.strip().startswith("File")]
    assert [line.strip().split(",")[:2] for line in files] == [
        [f'File "{tmp_path}/train.py"', f" line {n}"] for n in (9, 6, 11)
    ]
    assert "frames inside rushlight left out: RUSHLIGHT_TRACEBACK=full" in told.splitlines()[0]
    assert told.splitlines()[-1] == "ValueError: of the script's own"
    monkeypatch.setenv("RUSHLIGHT_TRACEBACK", "full")
    whole = run(script=script, status=1).stderr
    assert "nn/base/hooks.py" in whole and "left out" not in whole and "cli/run.py" not in whole


def test_syntax_errors_and_exit_statuses(run) -> None:
    assert "SyntaxError" in run(script="def :", status=1).stderr
    run(script="import sys; sys.exit(7)", status=7)
    assert run(script="raise SystemExit('stop')", status=1).stderr == "stop\n"


def test_errors_of_the_command_line(run) -> None:
    assert "no such script" in run("absent.py", status=2).stderr
    assert "what shall be run" in run("--weights", "random", status=2).stderr
    assert "No module named" in run("-m", "no.such.module", status=1).stderr
    folder = run(".", status=2).stderr
    assert folder == "rushlight run: the folder . cannot be run: it has no __main__.py\n"


def test_weights_option(run) -> None:
    script = """
        from torchvision.models import resnet18, ResNet18_Weights
        model = resnet18(weights=ResNet18_Weights.DEFAULT)
        print(model.fc.out_features)
    """
    assert run("--weights", "random", "train.py", status=2).stderr  # no script yet
    failed = run(script=script, status=1)
    refused = run("--weights", "/no/such/file", "train.py", status=2)
    assert "no '/no/such/file'" in refused.stderr and len(refused.stderr.splitlines()) == 1
    assert "--weights random" in failed.stderr.splitlines()[-1]
    done = run("--weights", "random", "train.py")
    assert done.stdout == "1000\n" and "random weights" in done.stderr


def test_a_memory_budget(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import torch\n"
        "model = torch.nn.Sequential(*[torch.nn.Linear(500, 500) for _ in range(6)])\n"
        "optimizer = torch.optim.Adam(model.parameters())\n"
        "model(torch.randn(64, 500)).sum().backward()\n"
        "optimizer.step()\n"
    )
    command = [sys.executable, "-m", "rushlight", "run", "--memory-budget"]
    done = subprocess.run([*command, "8MB", "--spill", str(tmp_path), str(script)], capture_output=True, text=True)
    assert done.returncode == 0 and "peak, measured" in done.stderr and "optimizer_state" in done.stderr
    tight = subprocess.run([*command, "900kB", str(script)], capture_output=True, text=True)
    assert tight.returncode == 1 and "are too few: at least" in tight.stderr
    assert not [line for line in tight.stderr.splitlines() if "File" in line and "budget.py" in line]
    assert "inside rushlight left out" in tight.stderr and "/dispatch/" not in tight.stderr
    broken = tmp_path / "broken.py"
    broken.write_text("raise ValueError('of its own')")
    least = subprocess.run([*command, "min", str(broken)], capture_output=True, text=True)
    assert least.returncode == 1 and "Traceback" not in least.stderr
    assert least.stderr.splitlines()[-1].endswith("broken.py be tried: ValueError: of its own")
    wrong = subprocess.run([*command, "lots", str(script)], capture_output=True, text=True)
    assert wrong.returncode == 2 and "expected bytes" in wrong.stderr
    for words, message in (
        (["0"], "leaves room for nothing"),
        (["2G", "--spill", "nowhere"], "--spill expects a folder"),
    ):
        wrong = subprocess.run([*command, *words, str(script)], capture_output=True, text=True)
        assert wrong.returncode == 2 and message in wrong.stderr and "Traceback" not in wrong.stderr
