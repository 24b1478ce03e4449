"""Tensors of several dtypes written and read."""

import tempfile

import same
import torch
from safetensors import safe_open
from safetensors.torch import load_file, load_model, save_file, save_model

with tempfile.TemporaryDirectory() as folder:
    given = {"a": same.data(3, 4), "b": same.labels(5, 9), "c": same.data(2).half(), "d": same.data(2).bfloat16()}
    save_file(given, f"{folder}/x.safetensors", {"k": "v"})
    found = load_file(f"{folder}/x.safetensors")
    assert all(torch.equal(found[k], given[k]) and found[k].dtype == given[k].dtype for k in given)
    with safe_open(f"{folder}/x.safetensors", "pt") as file:
        part = file.get_slice("a")[1:, :2]
    net = same.weights(torch.nn.Linear(4, 3))
    save_model(net, f"{folder}/m.safetensors")
    other = torch.nn.Linear(4, 3)
    load_model(other, f"{folder}/m.safetensors")
same.report([part.sum().item(), other(given["a"]).sum().item()])
