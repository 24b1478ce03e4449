"""A tracer that first rewrites functions: asserts on values that are not there yet become steps."""

from __future__ import annotations

import ast
import copy
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any

from rushlight.basics.signatures import annotations_of
from rushlight.fx._symbolic_trace import Tracer
from rushlight.fx.annotate import annotate
from rushlight.fx.graph import Graph
from rushlight.nn.modules.module import Module

__all__ = ["AST_Rewriter", "RewritingTracer"]

_CHECK, _ANNOTATE = "__rewritten_assert", "__rewritten_annotation"  # what rewritten code calls


class AST_Rewriter(ast.NodeTransformer):
    """Rewrites functions: ``assert x, text`` calls `torch._assert`, ``x: kind = value`` keeps its kind by `fx.annotate`."""

    def rewrite(self, fn: FunctionType) -> FunctionType:
        """The function, rewritten; its source has to be there."""
        tree = ast.parse(textwrap.dedent(inspect.getsource(fn)))
        (defined,) = tree.body
        defined.decorator_list.clear()  # type: ignore[attr-defined]
        self.visit(defined)
        free = fn.__code__.co_freevars
        if free:  # variables of the function around are such again
            around = ast.parse(f"def around({', '.join(free)}):\n    pass\n").body[0]
            around.body = [defined]  # type: ignore[attr-defined]
            tree.body = [around]
        ast.increment_lineno(ast.fix_missing_locations(tree), fn.__code__.co_firstlineno - 1)
        code = compile(tree, fn.__code__.co_filename, "exec", dont_inherit=True, flags=fn.__code__.co_flags & _FUTURE)
        found = next(each for each in _codes(code) if each.co_name == fn.__name__)
        check = sys.modules[__name__.partition(".")[0]]._assert
        fn.__globals__.update({_CHECK: check, _ANNOTATE: annotate})
        cells = dict(zip(free, fn.__closure__ or (), strict=True))
        closure = tuple(cells[name] for name in found.co_freevars)
        made = FunctionType(found, fn.__globals__, fn.__name__, fn.__defaults__, closure)
        made.__kwdefaults__, made.__annotations__ = fn.__kwdefaults__, annotations_of(fn)
        return made

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        """A call in place of an assert."""
        said = node.msg or ast.Constant("")
        call = ast.Call(ast.Name(_CHECK, ast.Load()), [node.test, said], [])
        return ast.copy_location(ast.Expr(call), node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """A call in place of an annotation of what is assigned."""
        if node.value is None:
            return node
        call = ast.Call(ast.Name(_ANNOTATE, ast.Load()), [node.value, node.annotation], [])
        return ast.copy_location(ast.Assign([node.target], call), node)


class RewritingTracer(Tracer):
    """Traces functions and modules whose code, and that of the modules in them, was rewritten by `AST_Rewriter`."""

    def trace(self, root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None) -> Graph:
        """The graph: see `Tracer.trace`."""
        return super().trace(self._rewritten(root, ""), concrete_args)

    def _rewritten(self, what: Any, path: str) -> Any:
        if isinstance(what, FunctionType):
            return AST_Rewriter().rewrite(what)
        if not isinstance(what, Module) or (path and self.is_leaf_module(what, path)):
            return what
        made, kind = copy.copy(what), type(what)
        if isinstance(kind.forward, FunctionType):
            forward = AST_Rewriter().rewrite(kind.forward)
            made.__class__ = type(kind.__name__, (kind,), {"forward": forward, "__module__": kind.__module__})
        inside = {name: self._rewritten(child, f"{path}.{name}".lstrip(".")) for name, child in what._modules.items()}
        made.__dict__["_modules"] = inside
        return made


_FUTURE = 0x1000000  # of ``from __future__ import annotations``


def _codes(code: CodeType) -> Iterator[CodeType]:
    """The code of the functions in a code, outer ones first."""
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield each
            yield from _codes(each)
