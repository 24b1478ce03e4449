"""An extension of Griffe: examples in docstrings are shown as code; Markdown takes `>>>` for quotations within quotations."""

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"^( *)>>> .*(?:\n(?!\s*$).*)*", re.MULTILINE)


class Examples(griffe.Extension):
    """Fences examples before the docstring is taken apart."""

    def on_instance(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Change the docstring of one module, class or function."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    """A docstring whose examples are blocks of code."""
    return EXAMPLE.sub(lambda found: f"\n{found[1]}```pycon\n{found[0]}\n{found[1]}```", text)
