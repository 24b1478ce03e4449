"""Checkpoints that PyTorch wrote of tensors, optimizers and modules on a GPU (cuda/, PyTorch 2.11 on an H200)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rushlight as torch

FILES = Path(__file__).parent / "cuda"
EXPECTED = dict(np.load(FILES / "expected.npz"))


def holds_what_was_trained(state: Any) -> None:
    for name, values in EXPECTED.items():
        kind, _, key = name.partition(".")
        if kind == "model":
            np.testing.assert_array_equal(state["model"][key].numpy(), values)
        elif kind == "exp_avg":
            np.testing.assert_array_equal(state["optimizer"]["state"][int(key)]["exp_avg"].numpy(), values)


@pytest.mark.parametrize("file", ["checkpoint.pt", "legacy.pt"])
def test_a_checkpoint_of_a_gpu_is_read_onto_the_cpu_and_trained_on(file: str) -> None:
    state = torch.load(FILES / file, map_location="cpu")
    holds_what_was_trained(state)
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3), torch.nn.Linear(3, 2))
    model.load_state_dict(state["model"])
    optimizer = torch.optim.AdamW(model.parameters())
    optimizer.load_state_dict(state["optimizer"])
    assert optimizer.param_groups[0]["lr"] == 1e-3
    scaler = torch.amp.GradScaler("cpu")
    scaler.load_state_dict(state["scaler"])
    assert scaler.get_scale() == state["scaler"]["scale"]
    model(torch.tensor(EXPECTED["x"])).sum().backward()
    optimizer.step()
    assert optimizer.state_dict()["state"][0]["step"].item() == 3  # the first of the three was skipped by the scaler


@pytest.mark.parametrize("file", ["checkpoint.pt", "legacy.pt"])
def test_without_a_place_for_it_the_error_says_what_to_give(file: str) -> None:
    with pytest.raises(RuntimeError, match=r"map_location=torch\.device\('cpu'\)"):
        torch.load(FILES / file)


def test_what_else_a_checkpoint_of_a_gpu_holds() -> None:
    state = torch.load(FILES / "checkpoint.pt", map_location="cpu")
    for name in ("bfloat16", "float16", "float64", "int8", "complex64"):
        x = state["kinds"][name]
        assert x.dtype is getattr(torch, name)
        assert x.device.type == "cpu"
        assert x.tolist() == list(range(6))
    assert state["kinds"]["bool"].tolist() == [False] + 5 * [True]
    assert state["kinds"]["sparse"].to_dense().equal(torch.eye(3))
    assert state["kinds"]["view"].equal(torch.arange(12.0).view(3, 4).t()[1:])
    assert state["kinds"]["view"].stride() == (1, 4)
    assert isinstance(state["kinds"]["parameter"], torch.nn.Parameter)
    assert (state["device"], state["dtype"]) == (torch.device("cuda:0"), torch.bfloat16)
    assert [x.shape for x in state["cuda_rng"]] == [(16,)]
    torch.set_rng_state(state["rng"])


def test_a_module_of_a_gpu_is_run_on_the_cpu() -> None:
    model = torch.load(FILES / "module.pt", map_location="cpu", weights_only=False).eval()
    assert type(model) is torch.nn.Sequential
    with torch.no_grad():
        np.testing.assert_allclose(model(torch.tensor(EXPECTED["x"])).numpy(), EXPECTED["out"], rtol=1e-5, atol=1e-6)
