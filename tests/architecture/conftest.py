"""What the tests of the architecture share."""

from collections.abc import Iterator

import pytest
from tests.architecture import syntax


@pytest.fixture(scope="module", autouse=True)
def forgotten() -> Iterator[None]:
    """Forget the syntax trees."""
    yield
    syntax.tree.cache_clear()
