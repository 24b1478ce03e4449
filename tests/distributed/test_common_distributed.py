"""Test cases of several processes, as PyTorch's and its libraries' tests are written, in a program that runs them."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from tests.distributed.test_several import variables

pytestmark = pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="mpi4py is not installed")

SCRIPT = """\
import sys, unittest, torch, torch.distributed as dist
from torch.testing._internal.common_utils import run_tests
from torch.testing._internal.common_distributed import (
    DistributedTestBase, MultiProcessTestCase, TEST_SKIPS, captured_output, create_tcp_store, get_timeout, requires_gloo, requires_nccl,
    nccl_skip_if_lt_x_gpu, require_n_gpus_for_nccl_backend, skip_if_lt_x_gpu, skip_if_no_gpu, skip_if_odd_worldsize, skip_if_small_worldsize, with_dist_debug_levels)

class Two(MultiProcessTestCase):
    def setUp(self):
        super().setUp()
        self._spawn_processes()
    @property
    def world_size(self): return 2
    def group(self):
        dist.init_process_group("gloo", rank=self.rank, world_size=self.world_size, store=dist.FileStore(self.file_name, self.world_size))
    @requires_gloo()
    def test_sum(self):
        self.group()
        x = torch.ones(2) * (self.rank + 1)
        dist.all_reduce(x)
        self.assertEqual(x, torch.full((2,), 3.0))
        self.assertEqual(self.is_master, dist.get_rank() == 0)
    def test_fails(self):
        self.group()
        if self.rank == 1: raise ValueError("mine")
        dist.barrier()
    @skip_if_lt_x_gpu(2)
    def test_gpus(self): raise AssertionError
    @skip_if_no_gpu
    def test_gpu(self): raise AssertionError
    @require_n_gpus_for_nccl_backend(2, "nccl")
    def test_nccl_of_two(self): raise AssertionError
    @nccl_skip_if_lt_x_gpu("gloo", 2)
    @skip_if_odd_worldsize
    @skip_if_small_worldsize
    def test_all(self): pass
    def test_skips(self): self.skipTest("never")
    @requires_nccl()
    def test_nccl(self): raise AssertionError
    @with_dist_debug_levels(["OFF", "DETAIL"])
    def test_levels(self): self.group() if not dist.is_initialized() else dist.barrier()

class Base(DistributedTestBase):
    @property
    def world_size(self): return 2
    def test_group(self):
        group = self.create_pg("cpu")
        self.assertEqual((group.size(), self.backend("cpu"), self.rank_to_device("cpu")), (2, "gloo", {0: [0], 1: [0]}))

class Here(unittest.TestCase):
    def test_helpers(self):
        store = create_tcp_store()
        store.set("a", "b")
        with captured_output() as (out, err): print("x"); print("y", file=sys.stderr)
        assert store.get("a") == b"b" and (out.getvalue(), err.getvalue()) == ("x\\n", "y\\n")
        assert get_timeout("a.b.test_DistributedDataParallel") == 500 and TEST_SKIPS["multi-gpu-2"].exit_code == 77

if __name__ == "__main__":
    run_tests()
"""


def test_cases_of_several_processes(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(textwrap.dedent(SCRIPT))
    words = [sys.executable, "-m", "rushlight", "run", "script.py", "-v"]
    done = subprocess.run(words, env=variables(), cwd=tmp_path, capture_output=True, text=True, timeout=240)
    ends = {
        line.split()[0]: line.rpartition("... ")[2].split()[0] for line in done.stderr.splitlines() if "... " in line
    }
    assert ends == {
        "test_sum": "ok", "test_fails": "ERROR", "test_gpus": "skipped", "test_gpu": "skipped", "test_skips": "skipped",
        "test_nccl": "skipped", "test_nccl_of_two": "skipped", "test_all": "ok", "test_levels": "ok", "test_group": "ok", "test_helpers": "ok",
    }, done.stderr  # fmt: skip
    assert "Process 1 exited with error code 10 and exception:" in done.stderr and "ValueError: mine" in done.stderr
    assert "Need at least 2 CUDA devices" in done.stderr and done.returncode == 1
