"""The version that scripts see: of rushlight, and under ``rushlight run`` of the PyTorch that it behaves as."""

import sys

import pytest

import rushlight
from rushlight.compat import imports
from rushlight.compat.torch_version import PYTORCH, TorchVersion

ORDER = ["1.0.dev1", "1.0a1.dev1", "1.0a1", "1.0b2", "1.0rc1", "1.0", "1.0+cpu", "1.0+cu118", "1.0+1", "1.0.post1.dev2",
         "1.0.post1", "1.1", "1.10", "2.0", "2.13.0", "2.13.0+rushlight", "2.13.1.dev0", "1!0.1"]  # fmt: skip


def test_versions_are_ordered_as_packaging_orders_them() -> None:
    for i, one in enumerate(ORDER):
        for j, other in enumerate(ORDER):
            left = TorchVersion(one)
            assert (left < other, left <= other, left == other) == (i < j, i <= j, i == j), (one, other)
            assert (left > other, left >= other, left != other) == (i > j, i >= j, i != j), (one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [("1.0", "1.0.0"), ("1.0-1", "1.0.post1"), ("1.0alpha1", "1.0a1"), ("1.0c1", "1.0rc1"), ("v1.0", "1.0"),
     ("1.0-beta.2", "1.0b2"), ("1.0.0.0", (1,)), ("1.0+CPU", "1.0+cpu")],
)  # fmt: skip
def test_two_spellings_of_one_version_are_equal(one: str, other: object) -> None:
    assert TorchVersion(one) == other and not TorchVersion(one) != other


def test_versions_compare_with_tuples_and_versions_of_packaging() -> None:
    assert PYTORCH >= (2, 9) and PYTORCH > (2, 13) and not PYTORCH < [2, 1] and PYTORCH < (3,)
    version = pytest.importorskip("packaging.version")
    parsed = version.parse(PYTORCH)
    assert version.parse("2.9") < parsed < version.parse("2.14") and str(parsed) == PYTORCH
    assert version.parse("2.9") < PYTORCH < version.parse("2.14")
    for one in ORDER:
        for other in ORDER:
            assert (TorchVersion(one) < other) == (version.parse(one) < version.parse(other)), (one, other)


def test_what_is_no_version_compares_as_a_string() -> None:
    assert PYTORCH != "parrot" and PYTORCH < "parrot" and not PYTORCH == "2.13.0 or so"
    assert PYTORCH != 3
    with pytest.raises(TypeError):
        PYTORCH >= 2  # type: ignore[operator]


def test_a_version_is_a_string() -> None:
    assert isinstance(PYTORCH, str) and PYTORCH.split(".")[:2] == ["2", "13"] and PYTORCH.startswith("2.13")
    assert {PYTORCH: 1}["2.13.0+rushlight"] == 1 and f"{PYTORCH}" == "2.13.0+rushlight"


def test_the_version_is_pytorchs_only_where_torch_is_rushlight() -> None:
    aside = {name: sys.modules.pop(name) for name in list(sys.modules) if imports.real_name(name)}
    before, room = rushlight.__version__, rushlight.version
    imports.install()
    try:
        import torch
        import torch.torch_version
        import torch.version

        assert torch.__version__ == "2.13.0+rushlight" and isinstance(
            torch.__version__, torch.torch_version.TorchVersion
        )
        assert type(torch.version.__version__) is str and torch.version.__version__ == "2.13.0+rushlight"
        assert torch.version.cuda is None and torch.version.hip is None
    finally:
        imports.uninstall()
        sys.modules.update(aside)
    assert rushlight.__version__ == before == rushlight.version.__version__ and rushlight.version is room


def test_rooms_that_are_not_there_are_missing_attributes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(rushlight._LAZY, "no_such_room", "rushlight.compat.no_such_room")
    assert not hasattr(rushlight, "no_such_room")
