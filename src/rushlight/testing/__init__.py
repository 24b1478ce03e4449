"""``torch.testing``: assertions for tests."""

from rushlight.testing.closeness import assert_close

__all__ = ["assert_close"]
