"""Checkpoints that outlive the number of processes that wrote them."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest
from tests.distributed.test_several import START, lines

import rushlight as torch

dcp = torch.distributed.checkpoint
several = pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="mpi4py is not installed")

MODEL = """\
import torch
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import *
from torch.distributed.fsdp import fully_shard

def sharded():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3))
    fully_shard(net[2])
    return fully_shard(net)
def steps(net, optimizer, count=3):
    for _ in range(count):
        optimizer.zero_grad()
        loss = (net(torch.ones(2, 4)) - torch.arange(3.0)).square().mean()
        loss.backward()
        optimizer.step()
    return loss.item()
"""


def steps(net: torch.nn.Module, optimizer: torch.optim.Optimizer, count: int = 3) -> float:
    """The loss of the last of some steps: what the processes do, in this one."""
    for _ in range(count):
        optimizer.zero_grad()
        loss = (net(torch.ones(2, 4)) - torch.arange(3.0)).square().mean()
        loss.backward()
        optimizer.step()
    return loss.item()


def made() -> torch.nn.Module:
    """The model of the processes."""
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.Tanh(), torch.nn.Linear(5, 3))


@several
def test_what_processes_wrote_is_read_by_fewer_and_by_more(tmp_path: Path) -> None:
    (after,) = lines(tmp_path, START + MODEL + """\
net = sharded()
optimizer = torch.optim.AdamW(net.parameters(), lr=0.1)
steps(net, optimizer)
model, optim = get_state_dict(net, optimizer)
dcp.save({"model": model, "optim": optim, "epoch": 3, "list": [torch.ones(2), {"a": (1, "b")}]}, checkpoint_id="saved")
later = dcp.async_save({"model": model, "epoch": 4}, checkpoint_id="later")
after = steps(net, optimizer)  # which changes the parameters
assert later.result() is None
there = {"model": {k: torch.empty(v.shape) for k, v in model.items()}, "epoch": 0}
dcp.load(there, checkpoint_id="later")
before = {"model": {k: torch.empty(v.shape) for k, v in model.items()}}
dcp.load(before, checkpoint_id="saved")
assert there["epoch"] == 4 and all(torch.equal(there["model"][k], before["model"][k]) for k in model)
whole = get_model_state_dict(net, options=StateDictOptions(full_state_dict=True))
assert type(whole["0.weight"]) is torch.Tensor and whole["0.weight"].shape == (5, 4)
first = get_optimizer_state_dict(net, optimizer, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
assert (first["state"]["0.weight"]["exp_avg"].shape == (5, 4)) if r == 0 else not first["state"]["0.weight"]

again = sharded()
other = torch.optim.AdamW(again.parameters(), lr=7.0)
model, optim = get_state_dict(again, other)
state = {"model": model, "optim": optim, "epoch": 0}
dcp.load(state, checkpoint_id="saved")
set_state_dict(again, other, model_state_dict=state["model"], optim_state_dict=state["optim"])
assert state["epoch"] == 3 and other.param_groups[0]["lr"] == 0.1
assert abs(steps(again, other) - after) < 1e-6
flat = get_optimizer_state_dict(again, other, options=StateDictOptions(flatten_optimizer_state_dict=True))
set_optimizer_state_dict(again, other, flat)
set_model_state_dict(again, whole if r == 0 else {}, options=StateDictOptions(full_state_dict=True, broadcast_from_rank0=True))
assert all(torch.equal(p.full_tensor(), whole[k]) for k, p in again.named_parameters())
try: dcp.load({"nonsense": torch.ones(1)} if r == 1 else {"epoch": 0}, checkpoint_id="saved")
except dcp.CheckpointException as error: assert "rank 1: RuntimeError: checkpoint.load: the checkpoint has no nonsense" in str(error) and list(error.failures) == [1]
else: raise AssertionError
if r == 0: print(after)
""")  # fmt: skip
    files = sorted(p.name.split(".")[0] for p in (tmp_path / "saved").glob("__*"))
    assert files == ["__0_0", "__1_0"]
    by_name = torch.distributed.checkpoint.state_dict
    net = made()
    optimizer = torch.optim.AdamW(net.parameters())
    model, optim = by_name.get_state_dict(net, optimizer)
    dcp.load({"model": model, "optim": optim}, checkpoint_id=tmp_path / "saved")
    dcp.format_utils.dcp_to_torch_save(tmp_path / "saved", tmp_path / "one.pt")
    whole = torch.load(tmp_path / "one.pt")
    assert whole["epoch"] == 3 and whole["list"][1] == {"a": (1, "b")} and whole["model"]["2.weight"].shape == (3, 5)
    assert all(torch.equal(p, whole["model"][name]) for name, p in net.named_parameters())
    by_name.set_optimizer_state_dict(net, optimizer, whole["optim"])
    assert steps(net, optimizer) == pytest.approx(float(after), abs=1e-6)
    alone = made()
    assert steps(alone, torch.optim.AdamW(alone.parameters(), lr=0.1), 6) == pytest.approx(float(after), abs=1e-6)


def test_a_checkpoint_is_whole_or_the_one_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dcp.save({"x": torch.ones(3), "n": 1}, checkpoint_id=tmp_path)
    writer = dcp.FileSystemWriter(tmp_path)
    monkeypatch.setattr(writer, "finish", lambda entries: 1 / 0)  # the process ends before the last file
    with pytest.raises(ZeroDivisionError):
        dcp.save({"x": torch.zeros(3), "n": 2}, storage_writer=writer)
    state = {"x": torch.empty(3), "n": 0}
    dcp.load(state, checkpoint_id=tmp_path)
    assert state["n"] == 1 and state["x"].tolist() == [1, 1, 1]
    dcp.save({"x": torch.zeros(3)}, checkpoint_id=tmp_path)
    assert len(list(tmp_path.glob("__*"))) == 1  # what no checkpoint needs is gone
    with pytest.raises(FileExistsError, match="overwrite=False"):
        dcp.save({}, storage_writer=dcp.FileSystemWriter(tmp_path, overwrite=False))


def test_every_dtype_and_what_has_a_state(tmp_path: Path) -> None:
    net, other = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
    tensors = {
        str(d): torch.ones(2, 3).to(d)
        for d in (torch.bfloat16, torch.float16, torch.complex64, torch.bool, torch.int64)
    }
    given = {
        "net": net,
        "state": {0: {"step": torch.tensor(2.0)}, "1": torch.empty(0, 3)},
        "all": tensors,
        "t": torch.arange(6.0).view(2, 3).t(),
    }
    dcp.save(given, checkpoint_id=tmp_path)
    zeros = {name: torch.zeros_like(t) for name, t in tensors.items()}
    state = {
        "net": other,
        "all": zeros,
        "state": {0: {"step": torch.tensor(0.0)}, "1": torch.empty(0, 3)},
        "t": torch.zeros(3, 2),
    }
    dcp.load(state, checkpoint_id=tmp_path)
    assert torch.equal(net.weight, other.weight) and all(torch.equal(zeros[k], t) for k, t in tensors.items())
    assert state["state"][0]["step"].item() == 2 and torch.equal(state["t"], given["t"])


def test_what_cannot_be_read_says_why(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"there is no file \.metadata, which is written last"):
        dcp.load({"x": torch.ones(1)}, checkpoint_id=tmp_path)
    dcp.save({"x": torch.ones(2), "y": 1}, checkpoint_id=tmp_path)
    for state, message in (({"z": 1}, "the checkpoint has no z"), ({"x": torch.ones(3)}, "expected the shape .3. of the state dict"),
                           ({"y": torch.ones(1)}, "is no tensor in the checkpoint"), ({"x": 1}, "is a tensor in the checkpoint")):  # fmt: skip
        with pytest.raises((RuntimeError, ValueError), match=message):
            dcp.load(state, checkpoint_id=tmp_path)
    path = tmp_path / ".metadata"
    found = json.loads(path.read_text())
    found["entries"][0]["file"] = "../secret"
    path.write_text(json.dumps(found))
    with pytest.raises(ValueError, match="not in its folder"):
        dcp.load({"x": torch.ones(2)}, checkpoint_id=tmp_path)
    path.write_bytes(b"\x80\x04")
    with pytest.raises(ValueError, match="not of a checkpoint of this package"):
        dcp.load({"x": torch.ones(2)}, checkpoint_id=tmp_path)
    with pytest.raises(ValueError, match="expected a folder as checkpoint_id"):
        dcp.save({})
