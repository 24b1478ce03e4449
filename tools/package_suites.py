"""The tests that packages made for PyTorch ship with their source, run here and under PyTorch.

    python tools/package_suites.py --oracle PYTHON [--only NAME ...]     # makes the rows of docs/package-tests.md anew

The packages are those of the virtual environment of `packages.py`, with what their tests need beside; sources come from
the package index in the version that is installed, and stay in that environment's folder.  A test is counted by what
pytest says of it; those that PyTorch fails too are not held against anyone.
"""

from __future__ import annotations

import argparse
import collections
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import xml.etree.ElementTree as Tree
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from tools import packages  # noqa: E402

PAGE = ROOT / "docs" / "package-tests.md"
LIMIT = 600  # seconds for the tests of a package
EACH = 60  # seconds for one of them
NEEDED = ("pytest", "pytest-timeout", "pytest-harvest", "hypothesis", "torchtestcase", "parameterized", "pytorch_memlab",
          "unittest-templates", "PyWavelets")  # fmt: skip
# torchvision, which many packages import, has operators that are compiled for one build of PyTorch: under another one it is
# loaded without them.
WITHOUT_OPERATORS = """
import torch, torch.library
made = torch.library.register_fake
torch.library.register_fake = lambda name, *a, **k: (lambda f: f) if str(name).startswith("torchvision::") else made(name, *a, **k)
try:
    import torchvision
except ImportError:
    pass
torch.library.register_fake = made
"""


@dataclass(frozen=True)
class Suite:
    """Which tests of a package are run, and what is known of those that fail here alone."""

    tests: str
    left: str = ""


SUITES = {
    "accelerate": Suite(
        "tests/test_accelerator.py tests/test_big_modeling.py tests/test_hooks.py tests/test_data_loader.py tests/test_utils.py "
        "tests/test_optimizer.py tests/test_scheduler.py tests/test_modeling_utils.py tests/test_state_checkpointing.py "
        "tests/test_memory_utils.py tests/test_kwargs_handlers.py tests/test_offload.py tests/test_grad_sync.py tests/test_metrics.py "
        "tests/test_activation_checkpointing_offload.py",
        "it compares the machine's free memory before and after, which other programs change"),
    "array-api-compat": Suite("tests", "it counts the names of PyTorch before all of its modules are loaded; `torch.checkpoint`, of rushlight's own, comes later"),
    "autoray": Suite("tests", "one draws with networkx, which was not there; five expect that a sum with `keepdims` and no dimension fails, and it does not"),
    "avalanche-lib": Suite("tests/training tests/models tests/benchmarks tests/evaluation --continue-on-collection-errors"),
    "backpack-for-pytorch": Suite("test/interface_test.py test/linear_test.py test/conv2d_test.py test/layers_test.py test/test_batch_first.py"),
    "cebra": Suite("tests/test_models.py tests/test_criterions.py tests/test_distributions.py"),
    "cplxmodule": Suite("tests"),
    "curvlinops-for-pytorch": Suite("test/test_hessian.py test/trace test/norm"),
    "delu": Suite("delu/tests", "the smallest products of matrices are compared to sums made one by one, as PyTorch makes them: fused, they are nearer to the truth by a bit"),
    "einops": Suite("einops/tests"),
    "gpytorch": Suite(
        "test/kernels test/distributions test/likelihoods test/mlls test/variational test/utils",
        "three ask that softplus of its inverse is 0.5 to seven digits: it is 0.50000003 by the last bit of a float32; one draws other "
        "random numbers, whose covariance has no Cholesky factor"),
    "hessian-eigenthings": Suite(
        "tests",
        "they count memory by tracemalloc, which sees NumPy's and not PyTorch's"),
    "julius": Suite("tests"),
    "linear_operator": Suite(
        "test/operators test/functions test/utils",
        "estimates of log determinants and systems of random matrices, which draw other random numbers (seven of them, by twelve seeds "
        "each: 12 fail here, 9 under PyTorch); a batch of CSR matrices is refused"),
    "memcnn": Suite("memcnn/models memcnn/utils"),
    "neuralforecast": Suite(
        "tests/test_core_serialization.py tests/test_malicious_artifacts.py tests/test_serialization.py tests/test_utils.py "
        "tests/test_sample_weight.py",
        "a pickle that is no file of `torch.save` is refused before anything in it is called"),
    "norse": Suite(
        "norse/torch/functional/test",
        "a scripted function makes a float of the int that its argument is annotated as"),
    "opt_einsum": Suite("opt_einsum"),
    "nflows": Suite("tests", "a spline at random points of a float32 (it fails for some seeds); two call torch.solve, which PyTorch removed"),
    "normflows": Suite("normflows"),
    "opacus": Suite(
        "opacus/tests/grad_samples/linear_test.py opacus/tests/grad_samples/conv1d_test.py opacus/tests/grad_samples/group_norm_test.py "
        "opacus/tests/grad_samples/layer_norm_test.py opacus/tests/grad_samples/embedding_test.py opacus/tests/validators"),
    "posteriors": Suite("tests --continue-on-collection-errors"),
    "poutyne": Suite("tests", "colorama was not there"),
    "pykeen": Suite(
        "tests/test_losses.py tests/test_nn tests/test_evaluation tests/test_instances.py tests/test_utils.py tests/test_loss_weights.py"),
    "pytorch-accelerated": Suite("test"),
    "pytorch-ignite": Suite(
        "tests/ignite/engine tests/ignite/metrics tests/ignite/base tests/ignite/test_utils.py --continue-on-collection-errors",
        "tests that ask for packages that are not there"),
    "pytorch-ood": Suite("tests --continue-on-collection-errors"),
    "pytorch-toolbelt": Suite("tests"),
    "pytorch_optimizer": Suite(
        "tests/test_optimizer_variants.py tests/test_optimizers.py tests/test_lr_schedulers.py tests/test_loss_functions.py tests/test_gradients.py"),
    "pytorch_wavelets": Suite("tests --continue-on-collection-errors"),
    "qiskit-machine-learning": Suite("test/connectors test/neural_networks --continue-on-collection-errors"),
    "schedulefree": Suite("schedulefree", "under PyTorch they ask for a GPU, which is the CPU here"),
    "segmentation-models-pytorch": Suite("tests"),
    "skorch": Suite("skorch/tests/test_regressor.py skorch/tests/test_utils.py skorch/tests/test_toy.py skorch/tests/test_setter.py"),
    "tensorly": Suite("tensorly"),
    "tensorly-torch": Suite("tltorch"),
    "tntorch": Suite("tests --continue-on-collection-errors"),
    "torch-optimizer": Suite("tests"),
    "torch-audiomentations": Suite("tests --continue-on-collection-errors", "torchaudio as it was installed asks PyTorch for libraries of GPUs"),
    "torchani": Suite("tests --continue-on-collection-errors", "programs are exported"),
    "torchbearer": Suite("tests"),
    "transformer-lens": Suite("tests/unit/model_bridge/generalized_components --ignore-glob=*/test_[n-z]*.py"),
    "vit-pytorch": Suite("tests", "under PyTorch six ask `flex_attention` for gradients, which it has for GPUs alone"),
    "zuko": Suite("tests", "transforms of random points are inverted to 1e-4 in float32, which some draws are not, under PyTorch either"),
    "array-api-extra": Suite(
        "tests/main -o filterwarnings=default",
        "the angle of 1 + 1j is that of NumPy, a bit from a quarter of pi; `cov` on the device meta works, which is expected to fail"),
    "hypll": Suite("tests"),
    "pytorch-kinematics": Suite("tests --continue-on-collection-errors"),
    "roma": Suite("test --import-mode=importlib --rootdir=test"),
    "sinabs": Suite(
        "tests --ignore=tests/test_dynapcnn --ignore=tests/test_specksim --ignore=tests/test_dynapcnnlayer "
        "--ignore=tests/test_dynapcnnnetwork --ignore=tests/test_graph_extractor",
        "sums of float32 are compared to those of a file to the bit"),
    "timm": Suite(
        "tests/test_layers_pool.py tests/test_layers_drop.py tests/test_layers_pos_embed.py tests/test_scheduler.py "
        "tests/test_input_conv.py tests/test_prune.py"),
    "torchkbnufft": Suite("tests"),
    "torchoptics": Suite("tests", "under PyTorch a sum of float32 is 1.2e-7 from 1, and 1e-7 is asked for"),
    "unfoldNd": Suite("test"),
    "xitorch": Suite(
        "xitorch/_tests",
        "thirteen write into a view of a tensor, another view of which has come to require grad; two are named by the class of a scripted function"),
}  # fmt: skip

HEAD = """# Tests of packages

Packages made for PyTorch ship tests with their source.  Here are those of some, unchanged, run beside
`rushlight install-as-torch` and under PyTorch.  "alone" counts the tests that fail here and pass there.  Made by
`python tools/package_suites.py --oracle PYTHON`; everyday uses of more packages are on [another page](packages.md).

| package | tests | pass under PyTorch | pass here | fail here alone | why |
| --- | ---: | ---: | ---: | ---: | --- |
"""


def version_of(python: Path, name: str) -> str:
    """The version of a package that an environment has."""
    asked = f"import importlib.metadata as m; print(m.version({name!r}))"
    return subprocess.run([python, "-c", asked], capture_output=True, text=True, check=True).stdout.strip()


def source(python: Path, name: str, version: str, folder: Path) -> Path:
    """The folder with the source of a version, fetched by pip now where it is not there."""
    place = folder / f"{name}-{version}"
    if not place.exists():
        with tempfile.TemporaryDirectory() as fetched:
            wanted = ["--no-deps", "--no-binary", name, "-d", fetched, f"{name}=={version}"]
            subprocess.run([python, "-m", "pip", "download", "-q", *wanted], check=True)
            unpacked(next(Path(fetched).iterdir()), place)
    return next(path for path in place.iterdir() if path.is_dir())


def unpacked(archive: Path, place: Path) -> None:
    """The content of an archive as a folder that is there whole or not at all."""
    part = archive.parent / "content"
    with tarfile.open(archive) as packed:
        packed.extractall(part, filter="data")
    shutil.move(part, place)


def outcomes(python: Path | str, tests: str, where: Path, **more: str) -> dict[str, str]:
    """What became of each test, by its name: passed, skipped or failed."""
    report = where / "outcomes.xml"
    report.unlink(missing_ok=True)
    given = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {"OMP_NUM_THREADS": "1"} | more
    given["PATH"] = f"{Path(python).parent}{os.pathsep}{given.get('PATH', '')}"  # tests start "python", too
    # What the package configures for its own runs is left out: options may name plugins that are not here.
    options = ["-q", "-p", "no:cacheprovider", "-o", "addopts=", "--timeout", str(EACH), f"--junitxml={report}"]
    limited = ["timeout", "-s", "INT", "-k", "20", str(LIMIT)]
    subprocess.run(
        [*limited, python, "-m", "pytest", *options, *tests.split()], cwd=where, env=given, capture_output=True
    )
    if not report.exists():
        raise RuntimeError(f"{where.name}: {python} -m pytest {tests} left no report")
    return told(report)


def told(report: Path) -> dict[str, str]:
    """Passed, skipped or failed by the name of a test, as a report of pytest's says."""
    found = {}
    for case in Tree.parse(report).iter("testcase"):
        kinds = {part.tag for part in case}
        state = "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
        found[f"{case.get('classname')}::{case.get('name')}"] = state
    return found


def row(name: str, suite: Suite, folder: Path, oracle: str, shared: Path) -> str:
    """The line of the table for a package, whose tests run now, here and under PyTorch."""
    python = folder / "bin" / "python"
    version = version_of(python, name)
    where = source(python, name, version, folder / "suites")
    backends = {"EINOPS_TEST_BACKENDS": "numpy,torch", "TENSORLY_BACKEND": "pytorch"}
    ours = outcomes(python, suite.tests, where, **backends)
    (folder / "oracle_plugin.py").write_text(WITHOUT_OPERATORS, encoding="utf-8")
    theirs = outcomes(
        oracle,
        suite.tests,
        where,
        PYTHONPATH=f"{shared}{os.pathsep}{folder}",
        PYTEST_PLUGINS="oracle_plugin",
        **backends,
    )
    print(name, *failed_alone(ours, theirs)[:10], sep="\n  ", flush=True)
    return line(f"{name} {version}", ours, theirs, suite.left)


def failed_alone(ours: dict[str, str], theirs: dict[str, str]) -> list[str]:
    """The tests that fail here and pass under PyTorch."""
    return [test for test, state in ours.items() if state == "failed" and theirs.get(test) == "passed"]


def line(package: str, ours: dict[str, str], theirs: dict[str, str], left: str) -> str:
    """The line of a package's outcomes; `left`, what is known of its failures, where they differ from PyTorch's."""
    here, there = collections.Counter(ours.values()), collections.Counter(theirs.values())
    alone = len(failed_alone(ours, theirs))
    why = left if alone or here != there else ""
    return f"| {package} | {len(ours)} | {there['passed']} | {here['passed']} | {alone} | {why} |"


def with_rows(page: str, rows: list[str]) -> str:
    """The page with these lines, and those of other packages as they stood."""
    lines = [*page.removeprefix(HEAD).splitlines(), *rows]
    by_name = {each.split()[1]: each for each in lines if each.startswith("| ") and each.split()[1] in SUITES}
    return HEAD + "\n".join(by_name[name] for name in sorted(by_name)) + "\n"


def main() -> None:
    """Make the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--oracle", required=True, help="a Python with PyTorch")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "packages", help="the virtual environment")
    parser.add_argument(
        "--only", nargs="*", choices=SUITES, help="run the tests of these, and leave the other lines as they are"
    )
    given = parser.parse_args()
    python = packages.environment_of(given.folder)
    subprocess.run([python, "-m", "pip", "install", "-q", *NEEDED, *(given.only or SUITES)], check=True)
    shared = packages.shared(given.folder)
    (given.folder / "suites").mkdir(exist_ok=True)
    for name in given.only or SUITES:
        made = row(name, SUITES[name], given.folder, given.oracle, shared)
        PAGE.write_text(with_rows(PAGE.read_text(encoding="utf-8"), [made]), encoding="utf-8")


if __name__ == "__main__":
    main()
