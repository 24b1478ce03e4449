"""The tests that packages made for PyTorch ship with their source, run here and under PyTorch.

    python tools/package_suites.py --oracle PYTHON [--only NAME ...]     # makes the rows of docs/package-tests.md anew

The packages are those of the virtual environment of `packages.py`, with what their tests need beside; sources come from
the package index in the version that is installed, and stay in that environment's folder.  A test is counted by what
pytest says of it; those that PyTorch fails too are not held against anyone.
"""

from __future__ import annotations

import argparse
import collections
import importlib.util
import os
import re
import subprocess
import tarfile
import urllib.request
import xml.etree.ElementTree as Tree
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from urllib.parse import urljoin

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "package-tests.md"
LIMIT = 600
NEEDED = ("pytest", "pytest-timeout", "hypothesis", "torchtestcase", "parameterized", "pytorch_memlab")


@dataclass(frozen=True)
class Suite:
    """Which tests of a package are run, and what is known of those that fail here alone."""

    tests: str
    left: str = ""


SUITES = {
    "backpack-for-pytorch": Suite("test/interface_test.py test/linear_test.py test/conv2d_test.py test/layers_test.py test/test_batch_first.py"),
    "einops": Suite("einops/tests", "a test that starts another Python, in which neither is installed"),
    "gpytorch": Suite(
        "test/kernels test/distributions test/likelihoods test/mlls test/variational test/utils",
        "three ask that softplus of its inverse is 0.5 to seven digits: it is 0.50000003 by the last bit of a float32; one draws other "
        "random numbers, whose covariance has no Cholesky factor"),
    "linear_operator": Suite(
        "test/operators test/functions test/utils",
        "estimates of log determinants, which draw other random numbers (by fifty seeds they fail here as often as under PyTorch); "
        "a batch of CSR matrices is refused"),
    "nflows": Suite("tests", "a spline at random points of a float32 (it fails for some seeds); two call torch.solve, which PyTorch removed"),
    "normflows": Suite("normflows"),
    "opacus": Suite(
        "opacus/tests/grad_samples/linear_test.py opacus/tests/grad_samples/conv1d_test.py opacus/tests/grad_samples/group_norm_test.py "
        "opacus/tests/grad_samples/layer_norm_test.py opacus/tests/grad_samples/embedding_test.py opacus/tests/validators"),
    "pytorch_optimizer": Suite(
        "tests/test_optimizer_variants.py tests/test_optimizers.py tests/test_lr_schedulers.py tests/test_loss_functions.py tests/test_gradients.py",
        "they ask how far a loss falls from where it begins, and it begins elsewhere: manual_seed gives other random numbers"),
    "schedulefree": Suite("schedulefree", "under PyTorch they ask for a GPU, which is the CPU here"),
    "skorch": Suite("skorch/tests/test_regressor.py skorch/tests/test_utils.py skorch/tests/test_toy.py skorch/tests/test_setter.py"),
    "zuko": Suite("tests"),
}  # fmt: skip

HEAD = """# Tests of packages

Packages made for PyTorch ship tests with their source.  Here are those of some, unchanged, run beside
`rushlight install-as-torch` and under PyTorch.  "alone" counts the tests that fail here and pass there.  Made by
`python tools/package_suites.py --oracle PYTHON`; everyday uses of more packages are on [another page](packages.md).

| package | tests | pass under PyTorch | pass here | fail here alone | why |
| --- | ---: | ---: | ---: | ---: | --- |
"""


def environment() -> ModuleType:
    """The tool that makes the virtual environment of the packages."""
    spec = importlib.util.spec_from_file_location("packages", ROOT / "tools" / "packages.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def version_of(python: Path, name: str) -> str:
    """The version of a package that an environment has."""
    asked = f"import importlib.metadata as m; print(m.version({name!r}))"
    return subprocess.run([python, "-c", asked], capture_output=True, text=True, check=True).stdout.strip()


def source(name: str, version: str, folder: Path) -> Path:
    """The folder with the source of a version, fetched now where it is not there."""
    place = folder / f"{name}-{version}"
    if not place.exists():
        index = f"https://pypi.org/simple/{name.replace('_', '-')}/"
        with urllib.request.urlopen(index, timeout=60) as page:
            links = re.findall(r'href="([^"#]+)', page.read().decode())
        url = urljoin(index, next(link for link in links if link.endswith(f"-{version}.tar.gz")))
        archive, _ = urllib.request.urlretrieve(url)
        with tarfile.open(archive) as packed:
            packed.extractall(place, filter="data")
        os.unlink(archive)
    return next(path for path in place.iterdir() if path.is_dir())


def outcomes(python: Path | str, tests: str, where: Path, **more: str) -> dict[str, str]:
    """What became of each test, by its name: passed, skipped or failed."""
    report = where / "outcomes.xml"
    report.unlink(missing_ok=True)
    given = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {"OMP_NUM_THREADS": "1"} | more
    # The packages of tests may shadow those of the environment no more than under plain pytest.
    command = [
        python,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-o",
        "addopts=",
        "--timeout",
        "60",
        f"--junitxml={report}",
        *tests.split(),
    ]
    subprocess.run(
        ["timeout", "-s", "INT", "-k", "20", str(LIMIT), *command], cwd=where, env=given, capture_output=True
    )
    found = {}
    for case in Tree.parse(report).iter("testcase"):
        kinds = {part.tag for part in case}
        state = "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
        found[f"{case.get('classname')}::{case.get('name')}"] = state
    return found


def row(name: str, suite: Suite, folder: Path, oracle: str, shared: Path) -> str:
    """The line of the table for a package."""
    python = folder / "bin" / "python"
    version = version_of(python, name)
    where = source(name, version, folder / "suites")
    backends = {"EINOPS_TEST_BACKENDS": "numpy,torch"}
    ours = outcomes(python, suite.tests, where, **backends)
    theirs = outcomes(oracle, suite.tests, where, PYTHONPATH=str(shared), **backends)
    alone = [test for test, state in ours.items() if state == "failed" and theirs.get(test) == "passed"]
    here, there = collections.Counter(ours.values()), collections.Counter(theirs.values())
    print(name, dict(here), dict(there), *alone[:10], sep="\n  ", flush=True)
    return f"| {name} {version} | {len(ours)} | {there['passed']} | {here['passed']} | {len(alone)} | {suite.left if alone or here != there else ''} |"


def with_rows(rows: list[str]) -> str:
    """The page with these lines, and those of other packages as they stood."""
    old = PAGE.read_text(encoding="utf-8").removeprefix(HEAD).splitlines() if PAGE.exists() else []
    by_name = {line.split()[1]: line for line in [*old, *rows] if line.startswith("| ") and line.split()[1] in SUITES}
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
    packages = environment()
    python = packages.environment_of(given.folder)
    subprocess.run([python, "-m", "pip", "install", "-q", *NEEDED, *(given.only or SUITES)], check=True)
    shared = packages.shared(given.folder)
    (given.folder / "suites").mkdir(exist_ok=True)
    for name in given.only or SUITES:
        line = row(name, SUITES[name], given.folder, given.oracle, shared)
        PAGE.write_text(with_rows([line]), encoding="utf-8")


if __name__ == "__main__":
    main()
