"""What the tests of the architecture share."""

from pathlib import Path

import pytest
from tests.architecture import syntax


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Forget the syntax trees after the last test of this folder."""
    if nextitem is None or nextitem.path.parent != Path(__file__).parent:
        syntax.tree.cache_clear()
        syntax.nodes.cache_clear()
