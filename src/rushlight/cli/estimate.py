"""``rushlight estimate``: what training a model will need, before it runs."""

from __future__ import annotations

import argparse
import difflib
import importlib
import json
import os
import runpy
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from rushlight.cli.parsers import Parser, count
from rushlight.cli.record import unwritable

__all__ = ["main"]

EPILOG = """examples:
  rushlight estimate resnet50 8x3x224x224                        of rushlight.models (those of torchvision)
  rushlight estimate vit_b_16 8x3x224x224 --optimizer AdamW --savings
  rushlight estimate train.py:make_model 32x128:int64            a function, class or module in a file
  rushlight estimate "package.nets:GPT(layers=12)" 8x1024:int64  or an expression, read in a file or module
  rushlight estimate resnet50 1x3x224x224 --limit 8GiB           the largest batch; status 1 if one is too much

A SHAPE is the sizes of an input, float32 unless :TYPE follows. The file is run, but for what is under
`if __name__ == "__main__"`; the model's own code runs on shapes, and nothing is computed.
"""


def main(argv: Sequence[str]) -> int:
    """Print the estimate; exit status 1 where it is above a limit, 2 where there is no such model."""
    options = parser().parse_args(list(argv))
    from rushlight import memory

    refused = unwritable(options.output)
    if refused is not None:
        print(f"rushlight estimate: {refused}", file=sys.stderr)
        return 2
    try:
        build = builder(options.model)
        samples = tuple(sample(text) for text in options.shapes)
        kind, train = optimizer(options.optimizer), not options.inference
        found = memory.estimate(build, samples, kind, train=train, processes=options.processes)
        largest = found.largest_batch(options.limit) if options.limit and found.peak <= options.limit else 0
    except (OSError, ImportError, AttributeError, NameError, SyntaxError, TypeError, ValueError, RuntimeError) as error:
        kind = "" if type(error) is ValueError else f"{type(error).__name__}: "  # our own words, or anybody's
        print(f"rushlight estimate: {options.model}: {kind}{error}", file=sys.stderr)
        return 2
    if options.json:
        print(json.dumps(figures(found, largest, options), indent=1))
    else:
        print(found.table() if options.savings else found)
        if options.limit:
            print(f"{'largest batch':<18}{largest:>10}  within {options.limit:,} bytes")
    if options.output:
        path = memory.report(found.timeline, options.output, title=options.model)
        print(f"{path}: open it in a browser", file=sys.stderr)
    return int(bool(options.limit) and found.peak > options.limit)


def parser() -> argparse.ArgumentParser:
    """The options."""
    from rushlight.cli.run import bytes_given

    made = Parser(
        prog="rushlight estimate",
        description="Say what training steps of a model will need, from shapes.",
        epilog=EPILOG,
    )
    made.add_argument("model", metavar="MODEL", help="NAME of rushlight.models, FILE.py:NAME or MODULE:NAME")
    made.add_argument("shapes", metavar="SHAPE", nargs="+", help="of each input: 8x3x224x224, 8x128:int64")
    made.add_argument("--optimizer", metavar="NAME", default="Adam", help="of rushlight.optim, or none (default: Adam)")
    made.add_argument("--inference", action="store_true", help="a forward without gradients")
    made.add_argument("--limit", metavar="BYTES", type=bytes_given, help="the largest batch within so many bytes")
    made.add_argument("--processes", metavar="N", type=count, default=1, help="also what each of N processes needs")
    made.add_argument("--savings", action="store_true", help="also what each technique would save")
    made.add_argument("--json", action="store_true", help="print a JSON object")
    made.add_argument("-o", "--output", metavar="PATH", help="write the timeline of two steps as a page")
    return made


def builder(text: str) -> Callable[[], Any]:
    """What builds the model that `text` names: in a file, a module, or among `rushlight.models`."""
    from rushlight import nn

    place, _, name = text.rpartition(":")
    scope = scope_of(place)
    try:
        found = eval(name, scope)
    except NameError as error:
        raise ValueError(unknown(error.name or name, place, scope)) from None
    if isinstance(found, nn.Module) or not callable(found):
        return lambda: found
    return found  # type: ignore[no-any-return]


def unknown(name: str, place: str, scope: dict[str, Any]) -> str:
    """What to say of a name that is not there, with those like it."""
    known = [key for key, value in scope.items() if callable(value) and key[0] != "_"]
    like = ", ".join(difflib.get_close_matches(name, known, 3))
    where = place or "rushlight.models"
    other = "" if place else "; a model of yours is FILE.py:NAME or MODULE:NAME"
    return f"{where} has no {name!r}{like and f', but {like}'}{other}"


def scope_of(place: str) -> dict[str, Any]:
    """The names of a file, of a module, or, for "", of `rushlight.models`."""
    if place:
        from rushlight.compat import devices, imports

        imports.install()
        devices.stay_on_cpu()
    if place.endswith(".py"):
        return names_of(place)
    if place:
        sys.path.insert(0, os.getcwd())
    return dict(vars(importlib.import_module(place or "rushlight.models")))


def names_of(path: str) -> dict[str, Any]:
    """The names of a file, which is run.  Raises ValueError where it cannot be, with its line that raised."""
    if not os.path.isfile(path):
        raise ValueError(f"there is no file {path}")
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    sys.argv[1:] = []  # a file that reads its options finds none: ours are not for it
    try:
        return runpy.run_path(path, run_name="__estimate__")
    except (Exception, SystemExit) as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
        where = f"line {lines[-1]} of {path} raised " if lines else ""
        raise ValueError(f"{where}{type(error).__name__}: {error}") from error


def sample(text: str) -> Any:
    """Zeros of a shape as it is given on the command line."""
    import rushlight as torch

    sizes, _, kind = text.partition(":")
    dtype = getattr(torch, kind or "float32", None)
    parts = sizes.replace(",", "x").split("x")
    if not isinstance(dtype, torch.dtype) or not all(part.isdigit() for part in parts):
        raise ValueError(f"expected a SHAPE as 8x3x224x224 or 8x128:int64, got {text!r}")
    return torch.zeros(*map(int, parts), dtype=dtype)


def optimizer(name: str) -> Any:
    """The class of an optimizer, whatever the case of its letters; None for "none"."""
    from rushlight import optim

    found = {key.lower(): value for key, value in vars(optim).items() if isinstance(value, type)}
    kind = found.get(name.lower())
    if name.lower() == "none":
        return None
    if kind is None or not issubclass(kind, optim.Optimizer):
        raise ValueError(f"--optimizer expects the name of one in rushlight.optim, got {name!r}")
    return kind


def figures(found: Any, largest: int, options: argparse.Namespace) -> dict[str, Any]:
    """The estimate as plain values."""
    names = ("parameters", "gradients", "optimizer_state", "activations", "inputs", "peak", "peak_phase", "by_category",
             "by_module", "phases", "ran")  # fmt: skip
    values = {name: getattr(found, name) for name in names}
    if found.processes:
        values["processes"] = {name: {**asdict(share), "peak": share.peak} for name, share in found.processes.items()}
    if options.limit:
        values |= {"limit": options.limit, "largest_batch": largest}
    if options.savings:
        values["savings"] = [{"name": s.name, "peak": s.peak, "saves": s.saves, "how": s.how} for s in found.savings]
    return values
