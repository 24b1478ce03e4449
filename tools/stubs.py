"""Types for checkers and editors, made from what the operators declare: `src/rushlight/stubs/*.pyi`.

    python tools/stubs.py            # write them
    python tools/stubs.py --check    # exit status 1 where they are not what would be written

Functions and methods are published while the package is imported, so a checker that reads the source does not see them.
Parameters have the types of their declarations and, where those say Any or object, those of `stub_types.py`.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import inspect
import itertools
import keyword
import re
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]
FOLDER = ROOT / "src" / "rushlight" / "stubs"

from tools import stub_types as types  # noqa: E402

import rushlight as torch  # noqa: E402
from rushlight.dispatch.registry import NAMESPACES  # noqa: E402
from rushlight.dispatch.results import return_types  # noqa: E402

HEAD = '''"""{what}

Made by `python tools/stubs.py`: what is changed here is lost.
"""

import builtins
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias, overload

from numpy import ndarray

from rushlight.basics import dtypes
from rushlight.basics.devices import device
from rushlight.generator import Generator
from rushlight.dispatch.formats import memory_format
from rushlight.basics.size import Size
from rushlight.storage import Storage
from rushlight.stubs import results
from rushlight.tensor import Tensor, layout

# What are names of functions, methods and dtypes too.
_bool: TypeAlias = builtins.bool
_complex: TypeAlias = builtins.complex
_dtype: TypeAlias = dtypes.dtype
_float: TypeAlias = builtins.float
_int: TypeAlias = builtins.int
_type: TypeAlias = builtins.type

'''
SHADOWED = re.compile(r"\b(bool|complex|dtype|float|int|type)\b")
PLACES = {
    "functions": ("rushlight", "What operators publish as `torch.NAME`."),
    "functional": ("rushlight.nn.functional", "What operators publish as `torch.nn.functional.NAME`."),
    "linalg": ("rushlight.linalg", "What operators publish as `torch.linalg.NAME`."),
    "special": ("rushlight.special", "What operators publish as `torch.special.NAME`."),
    "fft": ("rushlight.fft", "What operators publish as `torch.fft.NAME`."),
}
KNOWN = {"Any", "Tensor", "bool", "int", "float", "str", "complex", "None", "dtype", "device", "Generator", "Size", "layout", "Sequence",
         "Callable", "memory_format", "Storage", "tuple", "list", "dict", "type", "object", "Literal"}  # fmt: skip


def main() -> int:
    """Write the files, or compare them with what would be written."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit status 1 where the files differ")
    check = parser.parse_args().check
    stale = [name for name, text in texts().items() if put(FOLDER / name, text, check)]
    if stale and check:
        print("not what the declarations say: " + ", ".join(stale) + "; run python tools/stubs.py")
    return int(bool(stale) and check)


def put(path: Path, text: str, check: bool) -> bool:
    """Whether the file was another one; it is written unless `check`."""
    former = path.read_text(encoding="utf-8") if path.exists() else None
    if former != text and not check:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return former != text


def texts() -> dict[str, str]:
    """The files by name."""
    made = {f"{name}.pyi": module(*place) for name, place in PLACES.items()}
    made["methods.pyi"] = methods()
    made["results.pyi"] = results()
    made["__init__.pyi"] = '"""Types of what is published while the package is imported."""\n'
    return made


def module(name: str, what: str) -> str:
    """The file of a namespace."""
    space = NAMESPACES[name.removeprefix("rushlight").removeprefix(".")]
    lines = [HEAD.format(what=what)]
    for key in sorted(k for k in space if not k.startswith("_") and k.isidentifier() and not keyword.iskeyword(k)):
        if inspect.isfunction(space[key]):
            lines += function(key, space[key])
        elif type(space[key]).__name__ in KNOWN and not isinstance(space[key], type):
            lines.append(f"{key}: {typed(type(space[key]).__name__)}")
    lines += of_package() if name == "rushlight" else types.ALSO.get(name, [])
    return "\n".join([*lines, "", *exported(lines[1:])]) + "\n"


def exported(lines: list[str]) -> list[str]:
    """The list of what is declared: pyright takes what an installed package does not list for its own."""
    found = (re.match(r"(?:def|class) (\w+)|(\w+): |from .* import \w+ as (\w+)", line) for line in lines)
    names = sorted({match[match.lastindex or 0] for match in found if match})
    return ["__all__: list[str] = [", *(f'    "{name}",' for name in names), "]"]


def of_package() -> list[str]:
    """What the package has beside functions of operators: dtypes, rooms, functions that are loaded when they are asked for."""
    dtypes = sorted(name for name, value in vars(torch).items() if type(value).__name__ == "dtype")
    rooms = sorted(name for name in torch._ROOMS if not name.startswith("_"))
    elsewhere = [
        (*at.rpartition(".")[::2], name) for name, at in sorted(torch._LAZY.items()) if not name.startswith("_")
    ]
    lazy = sorted((name, at) for name, at in torch._FUNCTIONS.items() if not name.startswith("_"))
    return [*(f"{name}: _dtype" for name in dtypes), *(f"from rushlight import {name} as {name}" for name in rooms),
            *(f"from {parent} import {module} as {name}" for parent, module, name in elsewhere),
            "from rushlight.dispatch.formats import memory_format as memory_format", *(f"from {at} import {name} as {name}" for name, at in lazy)]  # fmt: skip


def methods() -> str:
    """The methods and properties of a tensor that its class does not show."""
    lines = [HEAD.format(what="Methods and properties of tensors."), "class TensorMethods:"]
    shown = shown_by_source()
    for key in sorted(n for n in dir(torch.Tensor) if not n.startswith("_") and n not in shown):
        value = inspect.getattr_static(torch.Tensor, key)
        if inspect.isfunction(value):
            lines += ["    " + line for line in function(key, value, True)]
        elif isinstance(value, property):
            lines += ["    @property", f"    def {key}(self) -> {typed(property_type(key))}: ..."]
            if value.fset is not None:
                lines += [f"    @{key}.setter", f"    def {key}(self, value: Any) -> None: ..."]
        elif isinstance(value, bool):  # what no tensor is that is not of a class of its own
            lines.append(f"    {key}: {typed('bool')}")
    return "\n".join(lines + types.FOR_SUBCLASSES) + "\n"


def shown_by_source() -> set[str]:
    """What `rushlight/tensor.py` itself shows of the class."""
    text = (ROOT / "src" / "rushlight" / "tensor.py").read_text(encoding="utf-8")
    body = text[text.index("class Tensor") : text.index("Tensor._held =")]
    return set(re.findall(r"^    (?:    )?def (\w+)\(", body, re.M))


def property_type(name: str) -> str:
    """The type of a property, seen on a tensor."""
    with warnings.catch_warnings(action="ignore"):  # of a property that is no longer meant to be read
        found = getattr(torch.zeros(2, 2, dtype=torch.complex64), name, None)
    kinds = {torch.Tensor: "Tensor", bool: "bool", int: "int", str: "str"}
    return kinds.get(type(found), "Any")


def results() -> str:
    """The classes of results with names."""
    lines = ['"""Results that have names.\n\nMade by `python tools/stubs.py`: what is changed here is lost.\n"""\n', "from typing import NamedTuple\n",
             "from rushlight.tensor import Tensor\n"]  # fmt: skip
    for name, fields in sorted(named_results().items()):
        lines += [f"class {name}(NamedTuple):", *(f"    {field}: Tensor" for field in fields), ""]
    return "\n".join(lines)


@functools.cache
def named_results() -> dict[str, tuple[str, ...]]:
    """The classes of `torch.return_types` that operators give, with their fields."""
    functions = (*NAMESPACES["linalg"].values(), *(NAMESPACES[""][name] for name in types.FACTORIZATIONS))
    pivots = torch.tensor([1, 2, 3], dtype=torch.int32)
    for call, given in itertools.product(functions, ((), (torch.eye(3),), (pivots,))):
        with contextlib.suppress(Exception), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call(torch.eye(3), *given)  # their classes are made at the first call
    return {name: cls._fields for name, cls in vars(return_types).items() if isinstance(cls, type)}


def function(name: str, value: Any, method: bool = False) -> Iterator[str]:
    """The lines that declare a function or method."""
    first = "self" if method else "condition: Tensor" if name == "where" else "input: Tensor"
    forms = (types.OF_METHODS if method else types.OF_FUNCTIONS).get(name) or types.OVERLOADS.get(name)
    if forms:
        for given, result in forms:
            shown = [first, *([given] if given else []), *keyword_out(result, value, method or "*" in given, given)]
            yield "@overload"
            yield f"def {name}({typed(', '.join(shown))}) -> {typed(result_name(result))}: ..."
        return
    result = result_type(name, value)
    given = list(parameters(name, value, method))
    given += keyword_out(result, value, method, ", ".join(given))
    yield f"def {name}({', '.join(given)}) -> {typed(result)}: ..."


def keyword_out(result: str, value: Any, method: bool, given: str) -> list[str]:
    """The keyword `out` of a function that takes it without showing it."""
    if method or re.search(r"\bout:", given) or not takes_out(value):
        return []
    several = result.startswith(("results.", "tuple")) or result in named_results()
    star = [] if re.search(r"\*(,|\w+:)", given) else ["*"]
    place = "tuple[Tensor, ...] | list[Tensor]" if several else "Tensor"
    return [*star, f"out: {place} | None = ..."]


def takes_out(value: Any) -> bool:
    """Whether a function has the keyword `out`: an operator that computes, or what was given it."""
    while value is not None:
        operator = getattr(value, "op", None)
        if hasattr(value, "without_out") or (operator is not None and operator.takes_out and not operator.view):
            return True
        value = getattr(value, "__wrapped__", None)
    return False


def typed(text: str) -> str:
    """A type, by names that no function of the file has."""
    return SHADOWED.sub(r"_\1", text)


def result_name(result: str) -> str:
    """The type of a result, classes of named ones where they are."""
    return f"results.{result}" if result in named_results() else result


def result_type(name: str, value: Any) -> str:
    """What a function returns."""
    plain = name.rstrip("_") if not name.startswith("__") else name
    declared = inspect.signature(value).return_annotation
    unsaid = ("Any", inspect.Signature.empty, "Array", "tuple[Any, ...]", "tuple[Any, Any]", "tuple[Any, Any, Any]")
    if declared in (*unsaid, "tuple[Tensor, ...]") or plain in types.RESULTS:
        prefix = {"rushlight.linalg": "linalg_"}.get(value.__module__, "")
        for candidate in (prefix + plain, plain):
            if candidate in named_results() and candidate not in types.RESULTS:
                return f"results.{candidate}"
    if declared in unsaid or plain in types.RESULTS:
        return types.RESULTS.get(plain, "Tensor")
    return annotation(declared)


def annotation(declared: Any) -> str:
    """A declared type, if the head of the file knows its names."""
    text = declared if isinstance(declared, str) else getattr(declared, "__name__", "Any")
    text = text.replace("Array | Tensor", "Tensor")  # arrays are what formulas of the first order give
    return text if set(re.findall(r"[A-Za-z_]\w*", text)) <= KNOWN else "Any"


def parameters(name: str, value: Any, method: bool) -> Iterator[str]:
    """The parameters of a function; in-place methods have those of the function that is not."""
    signature = signature_of(name, value)
    star = False
    given = [p for p in signature.parameters.values() if p.name not in ("old", "named")]
    if method:
        yield "self"
        given = given[1:]
    optional = False
    for p in given:
        if p.kind is p.VAR_KEYWORD:
            yield f"**{p.name}: Any"
            continue
        if p.kind is p.VAR_POSITIONAL:
            yield f"*{p.name}: {typed(types.VARIADIC.get(name, 'Any'))}"
            star = True
            continue
        if p.kind is p.KEYWORD_ONLY and not star:
            yield "*"
            star = True
        has_default = p.default is not p.empty or (optional and p.kind is not p.KEYWORD_ONLY)
        optional = optional or has_default
        yield f"{p.name}: {typed(parameter_type(name, p))}{' = ...' if has_default else ''}"


def signature_of(name: str, value: Any) -> inspect.Signature:
    """The signature of what is called, of the function behind a method in place."""
    signature = inspect.signature(value)
    if name.endswith("_") and not name.endswith("__") and list(signature.parameters) == ["args", "kwargs"]:
        plain = getattr(torch.Tensor, name[:-1], None) or getattr(torch, name[:-1], None)
        if plain is not None:
            signature = inspect.signature(plain)
            signature = signature.replace(parameters=[p for k, p in signature.parameters.items() if k != "out"])
    return signature


def parameter_type(name: str, p: inspect.Parameter) -> str:
    """The type of a parameter."""
    plain = name.rstrip("_") or name
    own = types.OWN.get((name, p.name)) or types.OWN.get((plain, p.name))
    if own:
        return own
    unsaid = p.annotation in (p.empty, "Any", "Array", "object")
    text = types.PARAMETERS.get(p.name) if unsaid else annotation(p.annotation)
    text = text or ("object" if p.annotation == "object" else "Any")
    return f"{text} | None" if p.default is None and "None" not in text and text not in ("Any", "object") else text


if __name__ == "__main__":
    raise SystemExit(main())
