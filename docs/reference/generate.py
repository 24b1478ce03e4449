"""A hook of MkDocs: writes the pages of operators and of Tensor's methods from what the package declares, as it is imported."""

import inspect
import os
import re
from collections import defaultdict
from typing import Any

import rushlight as torch
from rushlight.dispatch.registry import NAMESPACES

FAMILIES = {
    "elementwise": "Elementwise", "reduce": "Reductions", "shape": "Shapes, views and joining", "index": "Indexing and sorting",
    "linear": "Products and linear algebra", "conv": "Convolutions, pooling and resizing", "norm": "Norms and batch statistics",
    "loss": "Losses and distances", "attention": "Attention", "random": "Random numbers", "create": "Creation and conversion",
    "recurrent": "Recurrent layers", "other": "Modes, types and all else",
}  # fmt: skip
SPACES = {"nn.functional": "nn.functional", "linalg": "linalg", "fft": "fft", "special": "special"}
FILES = {"index": "indexing"}  # of families whose name means something else to a browser
FIRST = "---\nsearch:\n  boost: 2\n---\n\n"  # in what a search finds
INDEX = "reference/operators/index.md"


def on_files(files: Any, config: Any) -> Any:
    """Adds the generated pages."""
    from mkdocs.structure.files import File  # here, so that the tests read the pages without MkDocs

    for path, content in pages().items():
        files.append(File.generated(config, path, content=content))
    return files


def pages() -> dict[str, str]:
    """The text of each page by its path."""
    found = {
        f"reference/operators/{FILES.get(key, key)}.md": text for key, text in {**families(), **namespaces()}.items()
    }
    return {INDEX: index(found), **found, "reference/tensor.md": FIRST + tensor()}


def families() -> dict[str, str]:
    """The functions of `torch` itself, by the folder of the package that declares them."""
    by_family = defaultdict[str, dict[str, Any]](dict)
    for name, function in public(NAMESPACES[""]).items():
        by_family[family(name, function)][name] = function
    return {
        key: page(f"Operators: {title}", "torch", by_family[key]) for key, title in FAMILIES.items() if by_family[key]
    }


def namespaces() -> dict[str, str]:
    """The functions of each namespace below `torch`."""
    return {
        key.replace(".", "-"): page(f"Operators: torch.{title}", f"torch.{key}", public(NAMESPACES[key]))
        for key, title in SPACES.items()
    }


def index(found: dict[str, str]) -> str:
    """The page that leads to the others, with all names."""
    parts = [
        "# Operators\n\nGenerated from the declarations, by family. Functions are also [methods](../tensor.md) where PyTorch has them.\n"
    ]
    for path, text in found.items():
        title = text.splitlines()[0].removeprefix("# Operators: ")
        names = re.findall(r"^## (\S+)$", text, re.MULTILINE)
        target = path.removeprefix("reference/operators/")
        links = ", ".join(f"[{name.removeprefix('torch.')}]({target}#{anchor(name)})" for name in names)
        parts.append(f"\n## [{title}]({target})\n\n{links}\n")
    return "\n".join(parts)


def anchor(heading: str) -> str:
    """The anchor that a heading of a plain name gets."""
    return re.sub(r"[^\w\s-]", "", heading.lower())


def public(functions: dict[str, Any]) -> dict[str, Any]:
    """Those with a public name, sorted by it."""
    return {name: f for name, f in sorted(functions.items()) if not name.startswith("_") and callable(f)}


def family(name: str, function: Any) -> str:
    """The folder of `ops` that a function is declared in, "other" outside of it.  In-place forms are made from the plain ones."""
    plain = NAMESPACES[""].get(name[:-1]) if name.endswith("_") else None
    if plain is not None:
        return family(name[:-1], plain)
    code = getattr(inspect.unwrap(function), "__code__", None)
    parts = code.co_filename.split(os.sep) if code else []
    found = parts[parts.index("ops") + 1] if "ops" in parts else "other"
    found = "elementwise" if found == "special" else found  # of torch itself; torch.special has a page of its own
    return found if found in FAMILIES else "other"


def page(title: str, prefix: str, functions: dict[str, Any]) -> str:
    """A page of functions, each with its signature and docstring."""
    return f"# {title}\n\n" + "\n".join(entry(f"{prefix}.{name}", name, f) for name, f in functions.items())


def entry(title: str, name: str, function: Any) -> str:
    """One function: heading, signature, docstring."""
    text = inspect.getdoc(function) or ""
    return f"## {title}\n\n```python\n{name}{signature(function)}\n```\n\n{blocks(text)}"


def blocks(text: str) -> str:
    """A docstring as blocks of text and of code: its examples."""
    parts = re.split(r"^(>>> .*(?:\n.+)*)\n*", text, flags=re.MULTILINE)
    kinds = ("text", "pycon")
    return "\n".join(f"```{kinds[i % 2]}\n{part.strip()}\n```\n" for i, part in enumerate(parts) if part.strip())


def names_of_tensor() -> list[str]:
    """The public names of Tensor, without those that it gets where PyTorch's tables of private names are loaded."""
    found = sorted((name for name in dir(torch.Tensor) if not name.startswith("_")), key=str.lower)
    return [x for x in found if type(inspect.getattr_static(torch.Tensor, x)).__module__ != "rushlight._C._known"]


def tensor() -> str:
    """Every public name of Tensor: its methods and attributes; of those that are functions too, the first line and a link."""
    functions = NAMESPACES[""]
    parts = [f"# Tensor\n\n{inspect.getdoc(torch.Tensor)}\n"]
    for name in names_of_tensor():
        found = inspect.getattr_static(torch.Tensor, name)
        target = getattr(torch.Tensor, name)
        text = (inspect.getdoc(target if callable(target) else found) or "").strip()
        parts.append(f"\n## Tensor.{name}\n")
        if callable(target):
            parts.append(f"```python\nTensor.{name}{signature(target)}\n```\n")
        if name in functions and not name.startswith("_") and text:
            key = family(name, functions[name])
            path = f"operators/{FILES.get(key, key)}.md#{anchor('torch.' + name)}"
            parts.append(f"{quoted(text.splitlines()[0])} See [torch.{name}]({path}).\n")
        elif text:
            parts.append(blocks(text))
        elif name.endswith("_") and hasattr(torch.Tensor, name[:-1]):
            parts.append(f"[Tensor.{name[:-1]}](#{anchor('Tensor.' + name[:-1])}) in place.\n")
    return "\n".join(parts)


def quoted(line: str) -> str:
    """A line of a docstring as Markdown that shows it as it is."""
    return re.sub(r"([*_<>\[\]|])", r"\\\1", line)


def signature(function: Any) -> str:
    """The public signature, without annotations."""
    try:
        found = inspect.signature(function)
    except (TypeError, ValueError):
        return "(...)"
    if list(found.parameters) == ["args", "kwargs"] and function.__name__.endswith("_"):  # in place: of what is not
        return signature(getattr(torch, function.__name__[:-1], None) or getattr(torch.Tensor, function.__name__[:-1]))
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in found.parameters.values() if p.name != "old"]
    return str(found.replace(parameters=bare, return_annotation=inspect.Signature.empty))
