"""What packages made for PyTorch do here: a small everyday use of each, and which of PyTorch's public names are there.

    python tools/packages.py --oracle PYTHON     # makes docs/packages.md anew

Packages are installed by plain pip into a virtual environment that `rushlight install-as-torch` was given
(`build/packages`, made where it is not there).  Each use in `package_uses/` runs there and under PYTHON, which has PyTorch
and sees the same packages, and prints numbers: losses of a few steps, with the same weights.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
USES = ROOT / "tools" / "package_uses"
PAGE = ROOT / "docs" / "packages.md"

# What uses need beside the package that they are for.
BESIDE = (
    "beartype", "einx", "geomloss", "julius", "linformer", "lion-pytorch", "networkx", "normflows", "nystrom-attention",
    "perceiver-pytorch", "pytorch-warmup", "tabulate",
)  # fmt: skip
# Use: what pip installs for it, and the packages whose versions are shown.
PACKAGES = {
    "accelerate_loop": "accelerate", "botorch_acquisition": "botorch", "captum_attributions": "captum", "diffusers_unet": "diffusers",
    "einops_layers": "einops", "gpytorch_regression": "gpytorch", "higher_unrolled": "higher", "ignite_engine": "pytorch-ignite",
    "kornia_filters": "kornia", "lightning_fit": "lightning", "peft_lora": "peft", "pyro_inference": "pyro-ppl",
    "safetensors_files": "safetensors", "sentence_transformers_fit": "sentence-transformers", "skorch_fit": "skorch",
    "tensorboard_writer": "tensorboard", "timm_step": "timm", "torch_geometric_graphs": "torch-geometric",
    "torchdiffeq_ode": "torchdiffeq", "torchmetrics_values": "torchmetrics", "torchsde_path": "torchsde",
    "transformers_trainer": "transformers", "zuko_flow": "zuko",
    "entmax_attention": "entmax", "lpips_distance": "lpips", "metric_learning_losses": "pytorch-metric-learning",
    "msssim_loss": "pytorch-msssim", "open_clip_contrast": "open-clip-torch", "schedulefree_steps": "schedulefree",
    "segmentation_models_unet": "segmentation-models-pytorch", "stable_baselines_ppo": "stable-baselines3",
    "torch_ema_average": "torch-ema", "torchinfo_summary": "torchinfo", "vit_pytorch_models": "vit-pytorch",
    "x_transformers_model": "x-transformers",
    "darts_series": "darts", "tianshou_dqn": "tianshou", "torchdata_stateful": "torchdata",
    "e3nn_equivariance": "e3nn", "ema_pytorch_average": "ema-pytorch", "forecasting_series": "pytorch-forecasting",
    "fvcore_analysis": "fvcore", "monai_segmentation": "monai", "reformer_attention": "reformer-pytorch",
    "rotary_positions": "rotary-embedding-torch", "tensordict_modules": "tensordict", "torch_optimizer_steps": "torch-optimizer",
    "vector_quantize_codebook": "vector-quantize-pytorch",
    "accelerate_big_models": "accelerate", "coral_ordinal": "coral-pytorch", "optuna_search": "optuna", "tabnet_table": "pytorch-tabnet",
    "cvxpylayers_program": "cvxpylayers", "curvlinops_matrices": "curvlinops-for-pytorch", "geoopt_manifolds": "geoopt",
    "kbnufft_samples": "torchkbnufft", "laplace_posterior": "laplace-torch", "neuraloperator_fourier": "neuraloperator",
    "ptwt_wavelets": "ptwt", "pypose_transforms": "pypose", "snntorch_spikes": "snntorch",
    "thop_profile": "ultralytics-thop", "torchvision_classification": "torchvision", "torchvision_detection": "torchvision",
    "asteroid_filterbank": "asteroid-filterbanks", "blitz_bayesian": "blitz-bayesian-pytorch", "byol_self": "byol-pytorch",
    "cooper_constraints": "cooper-optim", "deepxde_poisson": "deepxde", "denoising_diffusion": "denoising-diffusion-pytorch",
    "gluonts_deepar": "gluonts", "hummingbird_trees": "hummingbird-ml", "jaxtyping_shapes": "jaxtyping", "keras_fit": "keras",
    "lightly_pretraining": "lightly", "linear_attentions": "performer-pytorch", "nnaudio_spectra": "nnaudio", "piq_quality": "piq",
    "sbi_posterior": "sbi", "spikingjelly_network": "spikingjelly", "thinc_wrapper": "thinc", "torchcde_path": "torchcde",
    "torchdyn_ode": "torchdyn", "torchensemble_fit": "torchensemble", "torchio_volumes": "torchio", "torchmin_solvers": "pytorch-minimize",
    "fastai_learner": "fastai", "pennylane_circuit": "pennylane", "whisper_small": "openai-whisper", "ultralytics_yolo": "ultralytics",
    "brevitas_training": "brevitas", "heavyball_steps": "heavyball", "torchattacks_pictures": "torchattacks", "torchjd_gradients": "torchjd",
    "torchao_quantized": "torchao", "torchopt_bilevel": "torchopt", "torchquad_integrals": "torchquad", "xitorch_solvers": "xitorch",
    "cfm_flows": "torchcfm", "contrast_info_nce": "info-nce-pytorch", "crf_tagging": "pytorch-crf", "diffsort_networks": "diffsort",
    "egnn_equivariance": "egnn-pytorch", "freia_flows": "FrEIA", "kan_splines": "pykan", "knowledge_graph": "torchkge",
    "learning_rate_free": "prodigyopt", "mambapy_states": "mambapy", "prune_structures": "torch-pruning", "survival_models": "pycox",
    "tabular_rtdl": "tabm", "tcn_sequences": "pytorch-tcn", "tensorkrowch_networks": "tensorkrowch", "torchode_batches": "torchode",
    "opacus_private": "opacus", "backpack_quantities": "backpack-for-pytorch", "torcheval_metrics": "torcheval", "normalizing_flows": "nflows",
    "tensorly_factors": "tensorly-torch", "transport_distances": "POT", "mup_width": "mup", "kymatio_scattering": "kymatio",
    "onnx_to_torch": "onnx2torch", "transformers_families": "transformers", "roma_rotations": "roma", "ncps_liquid": "ncps",
    "lr_finder_range": "torch-lr-finder",
    "pytorch_optimizer_steps": "pytorch-optimizer", "windowed_attentions": "local-attention", "poutyne_fit": "poutyne",
    "nngeometry_fisher": "nngeometry", "audio_losses": "auraloss", "hyperdimensional": "torch-hd", "pomegranate_models": "pomegranate",
}  # fmt: skip

# torchvision's operators are compiled for one build of PyTorch; elsewhere its Python part is used without them.
PRELUDE = """
import torch, runpy, sys
made = torch.library.register_fake
torch.library.register_fake = lambda name, *a, **k: (lambda f: f) if str(name).startswith("torchvision::") else made(name, *a, **k)
sys.argv = sys.argv[1:]
sys.path.insert(0, sys.argv[0].rpartition("/")[0])
runpy.run_path(sys.argv[0], run_name="__main__")
"""

NAMES = """
import importlib, json, pkgutil, sys, types, warnings
warnings.simplefilter("ignore")
import torch
found, names = {}, ["torch"]
for module in pkgutil.walk_packages(torch.__path__, "torch.", onerror=lambda name: None):
    if not any(part.startswith("_") for part in module.name.split(".")) and "testing" not in module.name:
        names.append(module.name)
for name in names:
    try:
        module = importlib.import_module(name)
    except BaseException:
        continue
    public = getattr(module, "__all__", None)
    if public is None:
        public = [k for k, v in vars(module).items() if not k.startswith("_") and getattr(v, "__module__", None) == name]
    found[name] = sorted(set(public))
print(json.dumps(found))
"""

LOOKED_UP = """
import importlib, json, sys, warnings
warnings.simplefilter("ignore")
import torch
from rushlight.absent import is_absent
from rushlight.absent.reasons import why
found = {}
for module, names in json.load(open(sys.argv[1])).items():
    try:
        room = importlib.import_module(module)
    except ImportError:
        room = None
    for name in names:
        if room is not None and hasattr(room, name):
            state = "refused" if is_absent(getattr(room, name)) else "there"
        else:
            state = "refused" if why(module, name) else "missing"
        found.setdefault(module, {}).setdefault(state, []).append(name)
print(json.dumps(found))
"""


LIMIT = 900  # seconds that one use may take


def run(command: list[str], **environment: str) -> tuple[list[float] | None, float, float, str]:
    """Numbers of the last line, seconds, the most resident megabytes, and the last line of the errors."""
    given = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {"OMP_NUM_THREADS": "1"} | environment
    start = time.perf_counter()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=given, cwd=USES
    ) as process:
        try:
            out, error = process.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            process.kill()
            return None, LIMIT, 0.0, f"not done after {LIMIT} seconds"
        seconds = time.perf_counter() - start
    peak = [line for line in error.splitlines() if line.startswith("PEAK ")]
    lines = [line for line in error.splitlines() if line.strip() and not line.startswith("PEAK ")]
    numbers = json.loads(out.strip().splitlines()[-1]) if process.returncode == 0 else None
    return (
        numbers,
        seconds,
        float(peak[-1].split()[1]) / 1024 if peak else 0.0,
        lines[-1][:160] if numbers is None and lines else "",
    )


def measured(python: str, code: str) -> list[str]:
    """A command that runs code and says, at the end of its errors, how much memory was resident at most."""
    end = "\nimport resource, sys\nprint('PEAK', resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)"
    return [python, "-W", "ignore", "-c", code + end]


def environment_of(folder: Path) -> Path:
    """The Python of a virtual environment with the packages, made now where there is none."""
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "-e", ROOT], check=True)
        subprocess.run([folder / "bin" / "rushlight", "install-as-torch"], check=True)
        subprocess.run(
            [python, "-m", "pip", "install", "-q", *BESIDE, *PACKAGES.values()],
            check=True,
        )
    return python


def shared(folder: Path) -> Path:
    """A folder with links to the packages of an environment, without PyTorch's stand-in and what an oracle has itself."""
    links = folder / "shared"
    links.mkdir(exist_ok=True)
    own = (
        "torch-2",
        "rushlight",
        "_rushlight",
        "_editable",
        "__editable",
        "numpy",
        "pip",
        "setuptools",
        "ml_dtypes",
        "__pycache__",
        "distutils",
    )
    for path in next(folder.glob("lib/python*/site-packages")).iterdir():
        if not path.name.startswith(own) and not (links / path.name).exists():
            (links / path.name).symlink_to(path)
    return links


def difference(ours: list[float] | None, theirs: list[float] | None) -> float | None:
    """The largest difference, beside 1 or the number itself; None where there is nothing to compare."""
    if ours is None or theirs is None or len(ours) != len(theirs):
        return None
    return max((abs(a - b) / max(1.0, abs(b)) for a, b in zip(ours, theirs, strict=True)), default=0.0)


def row(use: str, folder: Path, oracle: str) -> str:
    """The line of the table for one use."""
    python, file = folder / "bin" / "python", str(USES / f"{use}.py")
    code = f"import runpy, sys; sys.argv = [{file!r}]; sys.path.insert(0, {str(USES)!r}); runpy.run_path({file!r}, run_name='__main__')"
    version = subprocess.run(
        [python, "-c", f"import importlib.metadata as m; print(m.version({PACKAGES[use]!r}))"],
        capture_output=True,
        text=True,
    )
    ours, seconds, peak, error = run(measured(str(python), code))
    theirs, their_seconds, their_peak, their_error = run(
        measured(oracle, f"import sys; sys.argv = ['-c', {file!r}]" + PRELUDE), PYTHONPATH=str(shared(folder)))  # fmt: skip
    apart = difference(ours, theirs)
    print(
        use,
        "fails: " + error if ours is None else apart,
        "PyTorch: " + their_error if theirs is None else "",
        flush=True,
    )
    what = (USES / f"{use}.py").read_text(encoding="utf-8").split('"""')[1].rstrip(".")
    shown = ("yes", f"{apart:.0e}" if apart is not None else "-") if ours is not None else (f"no: `{error}`", "-")
    speed = f"{seconds:.0f} / {their_seconds:.0f}" if ours is not None and theirs is not None else "-"
    memory = f"{peak:.0f} / {their_peak:.0f}" if ours is not None and theirs is not None else "-"
    return f"| {PACKAGES[use]} {version.stdout.strip()} | {what} | {shown[0]} | {shown[1]} | {speed} | {memory} |"


def names(folder: Path, oracle: str) -> str:
    """The table of public names, by the first part below torch."""
    public = subprocess.run([oracle, "-W", "ignore", "-c", NAMES], capture_output=True, text=True, check=True)
    listed = folder / "names.json"
    listed.write_text(public.stdout.strip().splitlines()[-1])
    looked_up = subprocess.run(
        [folder / "bin" / "python", "-c", LOOKED_UP, listed], capture_output=True, text=True, check=True
    )
    found: dict[str, dict[str, list[str]]] = json.loads(looked_up.stdout.strip().splitlines()[-1])
    total: dict[str, dict[str, int]] = {}
    for module, states in found.items():
        counts = total.setdefault(".".join(module.split(".")[:2]), {})
        for state, given in states.items():
            counts[state] = counts.get(state, 0) + len(given)
            if state == "missing":
                print("missing:", module, " ".join(given))
    lines = [
        "| module, with those below it | there | refused, with a reason | missing |",
        "| --- | ---: | ---: | ---: |",
    ]
    whole = {state: sum(counts.get(state, 0) for counts in total.values()) for state in ("there", "refused", "missing")}
    for module, counts in [("**all**", whole), *sorted(total.items())]:
        lines.append(
            "| "
            + " | ".join([module, *(str(counts.get(state, 0)) for state in ("there", "refused", "missing"))])
            + " |"
        )
    return "\n".join(lines)


HEAD = """# Packages made for PyTorch

Installed by plain pip beside `rushlight install-as-torch`, unchanged. Each use runs here and under PyTorch with the same weights;
"apart" is the largest difference of its numbers, losses and sums of gradients, beside 1 or the number itself. Seconds are of the
whole process, imports included, on one thread, of a machine that was
busy with other work: rough; megabytes are the most that were resident. Made by
`python tools/packages.py --oracle PYTHON`; the uses are in `tools/package_uses`.

| package | use | works | apart | seconds here / PyTorch | MB here / PyTorch |
| --- | --- | --- | ---: | ---: | ---: |
"""


NAMES_HEAD = "\n## Public names\n\n"


def with_rows(page: str, rows: list[str]) -> str:
    """The page with these lines in the place of those of the same packages and uses, or at the end of the table."""
    before, head, after = page.partition(NAMES_HEAD)
    lines = before.rstrip("\n").split("\n")
    for given in rows:
        name, what = given.split()[1], given.split(" | ")[1]
        place = next(
            (i for i, line in enumerate(lines) if line.startswith(f"| {name} ") and f" | {what} | " in line), None
        )
        if place is None:
            lines.append(given)
        else:
            lines[place] = given
    return "\n".join(lines) + "\n" + head + after


def main() -> None:
    """Make the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--oracle", required=True, help="a Python with PyTorch")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "packages", help="the virtual environment")
    parser.add_argument(
        "--only", nargs="*", choices=PACKAGES, help="run these and print their lines, without making the page"
    )
    parser.add_argument(
        "--add", action="store_true", help="with --only: put their lines into the page, which stays as it is else"
    )
    parser.add_argument(
        "--names", action="store_true", help="count public names anew, and leave the rest of the page as it is"
    )
    given = parser.parse_args()
    environment_of(given.folder)
    if given.names:
        rows_alone = PAGE.read_text(encoding="utf-8").partition(NAMES_HEAD)[0]
        PAGE.write_text(f"{rows_alone}{NAMES_HEAD}{names(given.folder, given.oracle)}\n", encoding="utf-8")
        return
    rows = [row(use, given.folder, given.oracle) for use in given.only or PACKAGES]
    if given.only:
        print("\n".join(rows))
        if given.add:
            PAGE.write_text(with_rows(PAGE.read_text(encoding="utf-8"), rows), encoding="utf-8")
        return
    counted = names(given.folder, given.oracle)
    PAGE.write_text(f"{HEAD}{chr(10).join(rows)}\n{NAMES_HEAD}{counted}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
