"""The figures of the house are counted as they are described."""

from __future__ import annotations

import ast

from tools import where


def test_named_and_used() -> None:
    assert where.knows(ast.parse("def gelu(x): ..."), "gelu") == {"named"}
    assert where.knows(ast.parse("from somewhere import gelu"), "gelu") == {"named"}
    assert where.knows(ast.parse("TABLE = {'relu gelu': 1}"), "gelu") == {"named"}
    assert where.knows(ast.parse("y = F.gelu(x)"), "gelu") == {"used"}
    assert where.knows(ast.parse("def f():\n    '''gelu'''  # gelu\n    gelu_of = 1"), "gelu") == set()
    assert where.knows(ast.parse("from ops import convolution_op"), "conv2d") == {"named"}


def test_shares_of_any() -> None:
    tree = ast.parse("def f(a: Any, b: int, c, *d: list[Any]) -> Any: ...\ndef g() -> None: ...")
    parameters, returns = where.shares({"engine/f.py": tree, "g.py": ast.parse("def h(a: int): ...")}, ("engine/",))
    assert (parameters.any_alone, parameters.all_of_them) == (1, 3)
    assert (returns.any_alone, returns.all_of_them) == (1, 2)


def test_lengths_leave_docstrings_out() -> None:
    tree = ast.parse('def f():\n    """One\n    two."""\n    return 1\n')
    assert where.lengths([tree]) == [2]


def test_cycles_count_imports_in_functions() -> None:
    trees = {
        "a.py": ast.parse("from p.b import x"),
        "b.py": ast.parse("def f():\n    from p import c"),
        "c.py": ast.parse("import p.a"),
        "d.py": ast.parse("from p.a import x"),
    }
    assert where.largest_cycle(where.graph(trees, "p")) == ["p.a", "p.b", "p.c"]
    trees["c.py"] = ast.parse("if TYPE_CHECKING:\n    import p.a")
    assert where.largest_cycle(where.graph(trees, "p")) == []


def test_folders_and_modules_at_the_top() -> None:
    paths = ["__init__.py", "fft.py", "tree.py", "ops/a.py", "ops/b.py", "ops/deep/c.py"]
    assert where.folders(paths) == {".": 3, "ops": 2, "ops/deep": 1}
    assert where.own_modules(paths) == ["tree"]
