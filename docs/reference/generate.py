"""A hook of MkDocs: writes the page of operators from what the package declares, as it is imported."""

import inspect
from typing import Any

from mkdocs.structure.files import File, Files

import rushlight as torch

TITLES = {"": "torch", "Tensor": "torch.Tensor"}


def on_files(files: Files, config: Any) -> Files:
    """Adds the generated page."""
    files.append(File.generated(config, "reference/operators.md", content=page()))
    return files


def page() -> str:
    """All public functions by namespace, each with its signature and docstring."""
    parts = ["# Operators\n\nGenerated from the declarations. Functions are also methods where PyTorch has them.\n"]
    for namespace, functions in torch.ops.NAMESPACES.items():
        if namespace == "Tensor":
            continue  # the methods repeat the functions
        title = TITLES.get(namespace, f"torch.{namespace}")
        parts.append(f"\n## {title}\n")
        for name, function in sorted(functions.items()):
            if not name.startswith("_") and callable(function):
                parts.append(entry(f"{title}.{name}", name, function))
    return "\n".join(parts)


def entry(title: str, name: str, function: Any) -> str:
    """One function: heading, signature, docstring."""
    text = inspect.getdoc(function) or ""
    return f"### {title}\n\n```python\n{name}{signature(function)}\n```\n\n```text\n{text}\n```\n"


def signature(function: Any) -> str:
    """The public signature, without annotations."""
    try:
        found = inspect.signature(function)
    except (TypeError, ValueError):
        return "(...)"
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in found.parameters.values()]
    return str(found.replace(parameters=bare, return_annotation=inspect.Signature.empty))
