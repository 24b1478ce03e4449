"""SciPy's special functions, imported when the first operator that needs them is called."""

from __future__ import annotations

from types import ModuleType

from rushlight.basics.errors import explained


def scipy_special(name: str) -> ModuleType:
    """The module scipy.special.  Raises ImportError, with what to install, for operator `name` if it is missing."""
    try:
        from scipy import special
    except ImportError as error:
        raise explained(
            ImportError(f"{name}() needs SciPy: pip install 'rushlight[scipy]'"), "missing-extra"
        ) from error
    return special
