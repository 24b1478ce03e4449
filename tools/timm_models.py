"""One step each of sixty models of timm, beside PyTorch: the loss, and two sums of the gradient of every parameter, in float64.

    python tools/timm_models.py --oracle PYTHON     # prints a line for each model, and the largest differences at the end

The environment is that of tools/packages.py (`--folder`, build/packages).  Each library runs all models in one process, one after
the other; the weights depend on the names of parameters alone, and nothing is dropped.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
import zlib
from pathlib import Path
from typing import Any

import packages

# Where a model takes 64 pixels it gets 64; these take batch norms of so few that rounding shows.
LARGER = {"efficientvit_m0": 128, "levit_128s": 224, "shvit_s1": 128, "crossvit_tiny_240": 240}
NAMES = """
lcnet_035 mobilenetv3_small_050 starnet_s050 mobilenetv2_035 mobilevit_xxs tinynet_e dla46_c mnasnet_small
edgenext_xx_small ese_vovnet19b_slim_dw mobilevitv2_050 regnety_002 ghostnet_050 regnetx_002 efficientvit_b0
mobilenetv4_conv_small swiftformer_xs hardcorenas_a convnext_atto gmlp_ti16_224 pit_ti_224 inception_next_atto
hgnetv2_b0 efficientnet_b0 xcit_nano_12_p16_224 repghostnet_050 convnextv2_atto pvt_v2_b0 convit_tiny
eva02_tiny_patch14_224 deit_tiny_distilled_patch16_224 visformer_tiny vit_tiny_patch16_224 repvit_m0_9
efficientformerv2_s0 gernet_s fastvit_t8 dpn48b resnest14d coat_lite_tiny repvgg_a0 nf_regnet_b0 densenet121
efficientvit_m0 resnet10t lambda_resnet26t tiny_vit_5m_224 mambaout_femto coatnet_pico_rw_224 skresnet18 mobileone_s0
resmlp_12_224 poolformer_s12 botnet26t_256 gcvit_xxtiny rexnet_100 hrnet_w18_small cait_xxs24_224 mixer_s32_224
shvit_s1
""".split()


RUN = """
import runpy
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def fill(torch: Any, model: Any) -> None:
    """Give parameters numbers that depend on their names alone; those of norms stay around one."""
    import numpy as np

    with torch.no_grad():
        for name, p in model.named_parameters():
            fresh = np.random.default_rng(zlib.crc32(name.encode())).standard_normal(tuple(p.shape)) * 0.05
            p.copy_(torch.tensor(fresh + (1.0 if p.dim() == 1 and "weight" in name else 0.0)).to(p.dtype))


def made(timm: Any, name: str) -> Any:
    """The model for small pictures, where it can be told so."""
    for options in ({"drop_path_rate": 0.0, "img_size": 64}, {"drop_path_rate": 0.0}, {}):
        try:
            return timm.create_model(name, num_classes=5, **options)
        except Exception:
            if not options:
                raise
    raise AssertionError(name)


def without_chance(torch: Any, model: Any) -> Any:
    """The model in training mode and float64, in which nothing is dropped."""
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
        for name in ("drop_rate", "drop_prob", "drop", "drop_path_rate", "attn_drop_rate"):
            if isinstance(getattr(module, name, None), float):
                setattr(module, name, 0.0)
    return model.double().train()


def predicted(torch: Any, model: Any, name: str) -> tuple[Any, int]:
    """What the model gives for two pictures of the smallest size that it takes, and that size."""
    import numpy as np

    sizes = [LARGER[name]] if name in LARGER else [64, 96, 128, 224, 256]
    for size in sizes:
        try:
            y = model(torch.tensor(np.random.default_rng(0).standard_normal((2, 3, size, size))))
            return (y[0] if isinstance(y, (tuple, list)) else y), size
        except Exception:
            if size == sizes[-1]:
                raise
    raise AssertionError(name)


def step(torch: Any, timm: Any, name: str) -> dict[str, Any]:
    """The loss and sums of gradients of a model: of absolute values, and weighted by cosines of places."""
    model = made(timm, name)
    fill(torch, model)
    model = without_chance(torch, model)
    y, size = predicted(torch, model, name)
    loss = torch.nn.functional.cross_entropy(y, torch.tensor([1, 3]))
    loss.backward()
    grads = {}
    for key, p in model.named_parameters():
        if p.grad is not None:
            places = torch.cos(torch.arange(p.numel(), dtype=torch.float64))
            grads[key] = [p.grad.abs().sum().item(), (p.grad.flatten() * places).sum().item()]
    return {"size": size, "loss": loss.item(), "grads": grads, "parameters": sum(p.numel() for p in model.parameters())}


def run(out: str, names: list[str]) -> None:
    """Write a line of JSON for each model."""
    warnings.simplefilter("ignore")
    import timm
    import torch

    torch.set_num_threads(1)
    with open(out, "w", encoding="utf-8") as file:
        for name in names:
            start = time.perf_counter()
            try:
                found = step(torch, timm, name)
            except Exception as error:
                found = {"error": f"{type(error).__name__}: {error}"[:300]}
            found |= {"name": name, "seconds": time.perf_counter() - start}
            file.write(json.dumps(found) + "\n")
            file.flush()


def apart(ours: dict[str, Any], theirs: dict[str, Any]) -> tuple[float, float]:
    """How far the losses are apart, and the sums of gradients beside the largest of the model."""
    if ours["grads"].keys() != theirs["grads"].keys():
        return abs(ours["loss"] - theirs["loss"]), float("inf")
    largest = max(abs(value) for pair in theirs["grads"].values() for value in pair)
    pairs = ((a, b) for key in theirs["grads"] for a, b in zip(ours["grads"][key], theirs["grads"][key], strict=True))
    return abs(ours["loss"] - theirs["loss"]), max(abs(a - b) for a, b in pairs) / largest


def results(python: str, code: str, names: list[str], **environment: str) -> dict[str, dict[str, Any]]:
    """What the models give under a Python."""
    given = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {"OMP_NUM_THREADS": "1"} | environment
    with tempfile.NamedTemporaryFile() as file:
        arguments = [__file__, "--run", file.name, "--models", *names]
        subprocess.run(
            [
                python,
                "-W",
                "ignore",
                "-c",
                f"import sys; sys.argv = ['-c', *{arguments!r}]; sys.path.insert(0, {str(packages.ROOT / 'tools')!r})"
                + code,
            ],
            env=given,
            check=True,
        )
        return {
            found["name"]: found for found in map(json.loads, Path(file.name).read_text(encoding="utf-8").splitlines())
        }


def main() -> None:
    """Compare, or run for a comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--oracle", help="a Python with PyTorch")
    parser.add_argument(
        "--folder", type=Path, default=packages.ROOT / "build" / "packages", help="the virtual environment"
    )
    parser.add_argument("--models", nargs="*", default=NAMES)
    parser.add_argument("--run", metavar="FILE", help="write what this Python's torch gives, and compare nothing")
    given = parser.parse_args()
    if given.run:
        return run(given.run, given.models)
    python = str(packages.environment_of(given.folder))
    ours = results(python, RUN, given.models)
    theirs = results(given.oracle, packages.PRELUDE, given.models, PYTHONPATH=str(packages.shared(given.folder)))
    report(ours, theirs)
    return None


def report(ours: dict[str, dict[str, Any]], theirs: dict[str, dict[str, Any]]) -> None:
    """Print a line for each model, then the whole."""
    worst: list[tuple[float, float]] = []
    print(
        "| model | pixels | parameters | loss apart | gradients apart | seconds here / PyTorch |\n| --- | ---: | ---: | ---: | ---: | ---: |"
    )
    for name, mine in ours.items():
        other = theirs[name]
        if "error" in mine or "error" in other:
            print(f"| {name} | {mine.get('error', '')} | {other.get('error', '')} | | | |")
            continue
        worst.append(apart(mine, other))
        print(f"| {name} | {mine['size']} | {mine['parameters']} | {worst[-1][0]:.0e} | {worst[-1][1]:.0e} | "
              f"{mine['seconds']:.1f} / {other['seconds']:.1f} |")  # fmt: skip
    families = len({name.split("_")[0] for name in ours})
    good = sum(loss <= 1e-9 and grads <= 1e-5 for loss, grads in worst)
    print(f"{len(ours)} models of {families} families: {good} agree to 1e-9 in the loss and 1e-5 in gradients; at most "
          f"{max(loss for loss, _ in worst):.0e} and {max(grads for _, grads in worst):.0e} apart")  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())  # type: ignore[func-returns-value]
