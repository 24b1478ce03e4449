"""Small functions of PyTorch's documentation, beside PyTorch."""

from __future__ import annotations

import pytest

import rushlight

torch = pytest.importorskip("torch")
BOTH = (torch, rushlight)

PATTERNS: list[tuple[str, dict[str, int]]] = [
    ("b h w c -> b h w c", {}),
    ("b h w c -> (b h) w c", {}),
    ("b h w c -> b (c h w)", {}),
    ("b (h1 h) (w1 w) c -> (b h1 w1) h w c", {"h1": 2, "w1": 2}),
    ("b ... c -> b c (...)", {}),
    ("... (h two) c -> two ... h c", {"two": 2}),
    ("b h w c -> b () h (w 1) c", {}),
]
MISFITS: list[tuple[str, dict[str, int]]] = [
    ("b h -> b h", {}),
    ("b h w c -> b h w d", {}),
    ("b h w (c d) -> b h w c d", {"c": 2}),
    ("b h w (c d) -> b h w c d", {}),
    ("b h w c - b", {}),
    ("b h w c -> b (h (w)) c", {}),
    ("b h w c -> b h w c", {"z": 1}),
    ("b b w c -> b w c", {}),
    ("b (h" + " a" * 200, {}),
]


@pytest.mark.parametrize(("pattern", "lengths"), PATTERNS)
def test_rearrange(pattern, lengths):
    found = [lib.func.rearrange(lib.arange(144.0).view(2, 4, 6, 3), pattern, **lengths) for lib in BOTH]
    assert found[0].tolist() == found[1].tolist()


def test_rearrange_of_several():
    found = [lib.func.rearrange([lib.zeros(2, 3), lib.ones(2, 3)], "n a b -> a (n b)") for lib in BOTH]
    assert found[0].tolist() == found[1].tolist()


@pytest.mark.parametrize(("pattern", "lengths"), MISFITS)
def test_rearrange_refuses(pattern, lengths):
    with pytest.raises(ValueError, match="rearrange"):
        rushlight.func.rearrange(rushlight.zeros(2, 4, 6, 3), pattern, **lengths)


@pytest.mark.parametrize("lib", BOTH, ids=["torch", "rushlight"])
def test_functionalize_changes_what_its_function_changes(lib):
    x = lib.zeros(2)
    assert lib.func.functionalize(lambda x: x.add_(1) * 2)(x).tolist() == [2, 2]
    assert x.tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="remove"):
        lib.func.functionalize(len, remove="views")


@pytest.mark.parametrize("lib", BOTH, ids=["torch", "rushlight"])
def test_names_of_types_classes_and_functions(lib):
    names = [lib.typename(x) for x in (lib.nn.Parameter, lib.nn.Linear(1, 1), lib.nn.Linear, len, 3, int, "a", lib)]
    assert [name.replace("rushlight", "torch") for name in names] == [
        "torch.nn.parameter.Parameter", "torch.nn.modules.linear.Linear", "torch.nn.modules.linear.Linear", "len", "int", "int",
        "str", "torch",
    ]  # fmt: skip


@pytest.mark.parametrize("lib", BOTH, ids=["torch", "rushlight"])
@pytest.mark.filterwarnings("ignore:Sparse")
def test_numpy_has_no_sparse_arrays(lib):
    for sparse in (lib.eye(2).to_sparse(), lib.eye(2).to_sparse_csr()):
        with pytest.raises(TypeError, match="to_dense"):
            sparse.numpy()


def test_the_default_backend_of_compile():
    assert rushlight.compiler.get_default_backend() == "inductor"
    try:
        rushlight.compiler.set_default_backend("eager")
        assert rushlight.compiler.get_default_backend() == "eager"
    finally:
        rushlight.compiler.set_default_backend(None)
    assert rushlight.compiler.get_default_backend() == "inductor"
    with pytest.raises(Exception, match="no such"):
        rushlight.compiler.set_default_backend("no such")


def test_a_gradient_of_another_dtype_is_refused():
    x = rushlight.ones(2, requires_grad=True)
    x.grad_dtype = rushlight.float32
    assert x.grad_dtype is rushlight.float32
    with pytest.raises(NotImplementedError, match="in_backward"):
        x.grad_dtype = rushlight.bfloat16
    with pytest.raises(RuntimeError, match="leaf"):
        _ = (x * 2).grad_dtype


def test_tags_of_operators():
    ours, theirs = ({name: getattr(lib.Tag, name).value for name in dir(torch.Tag) if name[0] != "_" and name not in ("name", "value")}
                    for lib in BOTH)  # fmt: skip
    assert ours == theirs
    rushlight.library.define("tagged::twice", "(Tensor x) -> Tensor", tags=rushlight.Tag.pt2_compliant_tag)
    assert rushlight.ops.tagged.twice.default.tags == (rushlight.Tag.pt2_compliant_tag,)
