"""Differences that docs/differences.md declares.  Each entry names its row there and swallows nothing else."""

from __future__ import annotations

import ast
import re
from functools import partial

import numpy as np

from .comparing import Difference, compare, hold
from .declared_graphs import GRAPHS, kept
from .declared_operators import IN_PIECES, OPERATORS
from .declaring import Declared, refused_by, statement, text
from .operands import (
    agree,
    agree_without,
    agree_without_refused,
    apart,
    as_with_copies,
    both,
    empty,
    executed,
    has,
    otherwise,
    reference_otherwise,
    same_place,
    there,
    wholly_agree,
)

# A layer or loss is one operator, and what is one operator in PyTorch may be a use of another here.
ONE_OPERATOR = (
    {"Addmm", "Addmv", "Linear", "View", "UnsafeView", "Squeeze"},
    {"NllLoss", "CrossEntropy"},
    {"Fill", "Zero"},
    {"T", "Transpose", "Permute", "Alias", "Movedim"},
    {"Alias", "View"},
    {"Copy", "Clone"},
    {"View", "ReshapeAlias", "UnsafeView", "Unflatten", "AsStrided"},
    {"Unsqueeze", "Slice", "Select", "Split", "SplitWithSizes", "Unbind", "Alias", "Unfold"},
    {"UnsafeSplit", "Split", "Slice"},
    {"Bmm", "Mm", "Mv", "Dot", "UnsafeView", "MatMul", "View", "Clone", "Squeeze", "Transpose"},
    {"Pow", "Square"},
    {"Sub", "Rsub", "Add", "AddScaled"},
    {"Copys", "Copy", "CopyInto", "CopySlices"},
    {"Neg", "Div", "ConjPhysical", "Conj"},
    {"DiagonalBackward", "DiagonalZeros"},
    {"RealPart", "Select", "ImagPart"},
    {
        "CopySlices",
        "CopyInto",
        "IndexFill",
        "IndexCopy",
        "IndexAdd",
        "IndexPut",
        "Fill",
    },  # a change of a whole tensor by an index
    {"UnsafeSplitWithSizes", "UnsafeSplit", "Split"},
)


def stem(name: object) -> str:
    """The operator in the name of a node."""
    return str(name).replace("Backwards", "Backward").removesuffix("Backward")


def node_name(difference: Difference) -> bool:
    """Whether a node has another name, one of the same operator, or is a view where it is one of several."""
    names = {stem(difference.reference), stem(difference.subject)}
    return difference.what == "grad_fn" and any(names <= group for group in ONE_OPERATOR)


def detached_result(difference: Difference) -> bool:
    """Whether the result of a layer, product or stack, a view of something inside in PyTorch alone, is detached in place."""
    target = re.search(r"(\w+)\.detach_\(", statement(difference))
    if target is None or not refused_by(difference, "Can't detach views in-place", by="reference"):
        return False
    product = re.search(rf"(?m)^\s*{target[1]} = (\w+ @ |\w+\.(mv|matmul)\()", text(difference)) is not None
    stack = re.search(rf"inference_mode(?s:.*)\b{target[1]} = torch\.stack\(", text(difference)) is not None
    return product or stack or "torch.nn.Linear(" in text(difference)


def view_name(difference: Difference) -> bool:
    """Whether a view that was changed shows the operator of the view."""
    if difference.what != "grad_fn":
        return False
    if not difference.subject:  # a history that is lost is shown as none
        return stem(difference.reference) == "AsStrided"
    became_another = re.search(r"\.(t|transpose|swap\w+|squeeze|unsqueeze)_\(", text(difference)) is not None
    restrided = stem(difference.subject) == "AsStrided" and "as_strided_(" in text(difference)
    conjugate = stem(difference.reference) in ("Conj", "ViewAsComplex", "ViewAsReal") and became_another
    return stem(difference.reference) == "AsStrided" or restrided or conjugate


def with_constants(text: str) -> str:
    """A statement with primals of func.linearize that nothing depends on, and without no_grad in the function."""
    text = re.sub(r"torch\.no_grad\(\)\(lambda: (.*?)\)\(\)", r"(\1)", text)
    return re.sub(r"(linearize\(.*?), x, y\)", r"\1, x.detach(), y.detach())", text)


def linearized(difference: Difference) -> bool:
    """Whether func.linearize differs by what PyTorch makes of primals and no_grad, or refuses a change of what it folded."""
    if difference.step is not None:
        folded = refused_by(difference, "a leaf Variable that requires grad", by="reference")
        return folded and "linearize(" in statement(difference)
    if "linearize(" not in text(difference):
        return False
    if difference.what in ("value", "grad"):
        return agree(difference, with_constants)
    return difference.what in ("requires_grad", "is_leaf")


CUMULATIVE = re.compile(r"\b(\w+)\.logcumsumexp\((-?\d)\)")


def one_by_one(line: str) -> str:
    """A statement with the logarithm of each sum of exponentials by itself."""
    return CUMULATIVE.sub(
        r"(torch.stack([\1.narrow(\2, 0, i + 1).logsumexp(\2) for i in range(\1.shape[\2])], \2) if \1.dim() else \1 * 1)",
        line,
    )


def digits_of_logcumsumexp(difference: Difference) -> bool:
    """Whether PyTorch has rushlight's tangent, or the derivative that is NaN there, once it computes each sum by itself."""
    lost = "forward_ad" in text(difference) or (apart(difference) is not None and np.isnan(difference.reference).any())  # type: ignore[call-overload]
    return (
        lost
        and any(map(CUMULATIVE.search, difference.statements))
        and difference.step is None
        and reference_otherwise(difference, one_by_one)
    )


EXPONENTIAL = re.compile(r"torch\.linalg\.matrix_exp\((.*?)\)( if |$)")


def by_its_series(line: str) -> str:
    """A statement with the exponentials of matrices as 64th powers of sums of powers."""
    term = r"torch.linalg.matrix_power((\1) / 64, k) / float(__import__('math').factorial(k))"
    return EXPONENTIAL.sub(rf"torch.linalg.matrix_power(sum({term} for k in range(24)), 64)\2", line)


def gradient_of_matrix_exp(difference: Difference) -> bool:
    """Whether PyTorch has rushlight's gradients of exponentials of matrices once it computes those by their series."""
    told = difference.step is None and any(map(EXPONENTIAL.search, difference.statements))
    return told and reference_otherwise(difference, by_its_series)


SATURATED = re.compile(r"(binary_cross_entropy\(\w+\.sigmoid\(\))")


def saturated(difference: Difference) -> bool:
    """Whether PyTorch's derivative is another by the slopes at an input that is all but 1, without which the sides agree."""
    if SATURATED.search(text(difference)) is None or apart(difference) is None:
        return False
    return agree(difference, lambda line: SATURATED.sub(r"\1.clamp(1e-3, 0.999)", line))


RENORM = re.compile(r"torch\.renorm\((\w+), 2, 0, ([\d.]+)\)")
NORMS_OF_ROWS = r"(\1.flatten(1).square().sum(1).sqrt() + 1e-7).reshape(-1, *[1] * (\1.dim() - 1))"


def without_norms(line: str) -> str:
    """A statement with norms, and `renorm` by them, written out."""
    return RENORM.sub(rf"(\1 * (\2 / {NORMS_OF_ROWS}).clamp(max=1))", line).replace(".norm()", ".square().sum().sqrt()")


def third_of_norm(difference: Difference) -> bool:
    """Whether PyTorch refuses to differentiate tangents of a norm's gradient, or of renorm's, which it changed itself."""
    return (
        refused_by(difference, "modified by an inplace operation", by="reference")
        and any(map(RENORM.search, difference.statements)) | (".norm()" in text(difference))
        and agree(difference, without_norms)
    )


class OfOwn(ast.NodeTransformer):
    """Gives each dual a tangent of its own."""

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        if ast.unparse(node.func).endswith("make_dual"):
            node.args[1] = ast.Call(ast.Attribute(node.args[1], "clone", ast.Load()), [], [])
        return node


def with_own_tangents(line: str) -> str:
    """A statement whose duals have tangents that nobody else has."""
    return ast.unparse(OfOwn().visit(ast.parse(line))) if "make_dual(" in line else line


def written_into_a_tangent(difference: Difference) -> bool:
    """Whether PyTorch changed a tangent that the program holds, without which the sides agree, or differ as an operator is declared to."""
    if "make_dual(" not in text(difference) or difference.step is not None:
        return False
    there = both(difference)[0]
    if not has(there, difference, str, difference.reference) or has(
        there, difference, with_own_tangents, difference.reference
    ):
        return False
    rewritten = list(map(with_own_tangents, difference.statements))
    rest = [other for other in hold(rewritten, *both(difference)) if same_place(other, difference)]
    of_operators = digits_of_logcumsumexp, saturated, *(entry.applies for entry in OPERATORS)
    return all(any(applies(other) for applies in of_operators) for other in rest)


def third_of_prod(difference: Difference) -> bool:
    """Whether PyTorch's derivative of tangents of a product is NaN, and rushlight's that of the product written out."""
    there = difference.reference
    if ".prod()" not in text(difference) or apart(difference) is None or not np.isnan(there).any():  # type: ignore[call-overload]
        return False
    written_out = r"__import__('math').prod(\1.reshape(-1).unbind())"
    return agree(difference, lambda line: re.sub(r"\b(\w+)\.prod\(\)", written_out, line))


def independent(difference: Difference) -> bool:
    """Whether a derivative that does not depend on what requires grad requires none here.

    That it does not depend is seen from the gradients, which are compared.
    """
    told = difference.what in ("requires_grad", "is_leaf") and re.search(
        r"torch\.(autograd\.)?func|unpack_dual", text(difference)
    )
    return bool(told) and difference.subject is (difference.what == "is_leaf")


def more_than_a_sample(difference: Difference) -> bool:
    """Whether an operator in place inside of vmap is refused, as a loop would refuse it."""
    return "vmap(" in statement(difference) and refused_by(difference, "doesn't match the broadcast shape")


def follows_its_base(difference: Difference) -> bool:
    """Whether a view of what began to require grad by a change of other parts of its memory is taken for a leaf."""
    if not refused_by(difference, "a leaf Variable that requires grad is being used", by="reference"):
        return False
    target = re.search(r"(\w+)(?:\[.*?\])?(?:\.\w+_\(| [-+*/]?= )", statement(difference).split("\n")[-1])
    made = target and re.search(rf"(?m)^\s*{target[1]} = (v\d+[.\[]|torch\.tensor\(.*\)\.view\()", text(difference))
    return bool(made) and not re.search(rf"{target[1]}\.requires_grad(_\((?!False)| = True)", text(difference))  # type: ignore[index]


def not_a_number(difference: Difference) -> bool:
    """Whether numbers that were made of complex ones differ only in what of infinity and NaN they are."""
    if (
        difference.what not in ("value", "grad")
        or "torch.complex(" not in text(difference)
        or apart(difference) is None
    ):
        return False
    a, b = np.asarray(difference.reference), np.asarray(difference.subject)
    known = np.isfinite(a)
    return bool(np.array_equal(known, np.isfinite(b)) and np.allclose(a[known], b[known], rtol=1e-6))


def half_written(difference: Difference) -> bool:
    """Whether elements differ that an index which is refused names beside others."""
    if difference.what not in ("value", "grad"):
        return False
    _, refused = executed(difference)
    return any(re.search(r"\w+\[.*\] [-+*/]?= ", line) for line in refused)


def copied_from_itself(difference: Difference) -> bool:
    """Whether the program puts at indices what lies on the same memory."""
    if difference.what not in ("value", "grad"):
        return False
    names, _ = executed(difference)
    put = re.findall(r"(?m)^\s*(v\d+)\[.*[\[(].*\] = (v\d+)$", text(difference))
    pairs = [(names.get(target), names.get(source)) for target, source in put]
    return any(
        a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()
        for a, b in pairs
        if a is not None and b is not None
    )


def half_run(difference: Difference) -> bool:
    """Whether gradients, or what threads, steps and hooks made of them, differ by how far statements came that both refuse."""
    if difference.step is not None or not difference.refusals:
        return False
    threads = re.search(r"together\(|with_default\(", text(difference))  # each numbers its nodes anew in PyTorch
    of_gradients = difference.what == "grad" or difference.where.endswith(".grad")
    stepped = re.search(r"\bo\.step\(", text(difference))  # whose state is that of parameters that have gradients
    if not (of_gradients or ((threads or stepped) and difference.what == "value") or ran_further(difference)):
        return False
    return agree_without_refused(difference, r"backward\(|autograd\.grad\(|together\(|with_default\(")


def ran_further(difference: Difference) -> bool:
    """Whether what hooks wrote on one side is in what they wrote on the other, in the same order."""
    sides = difference.reference, difference.subject
    if not difference.where.startswith("log") or not all(isinstance(side, list) for side in sides):
        return False
    fewer, more = sorted(sides, key=len)  # type: ignore[arg-type]
    rest = iter(more)
    return len(fewer) < len(more) and all(any(not any(compare("", entry, other)) for other in rest) for entry in fewer)


def several_at_one_place(difference: Difference) -> bool:
    """Whether a change of several elements at one place in memory is refused."""
    several = refused_by(difference, "refers to a single memory location")
    return (
        several
        and re.search(
            r"\.(masked_fill|index_fill|tri[ul]|copy|conj_physical)_\(|index_put_|\] [-+*]?= ", statement(difference)
        )
        is not None
    )


def product_of_the_old(difference: Difference) -> bool:
    """Whether `.data` of an operand of three dimensions was assigned, which the product had saved a view of in PyTorch."""
    assigned = re.search(r" @ (?s:.*)\.data = ", text(difference)) is not None
    operands = re.compile(r"\b(\w+) @ (\w+)\b")
    return (
        assigned
        and difference.what in ("value", "grad")
        and otherwise(difference, lambda line: operands.sub(r"\1.view_as(\1) @ \2.view_as(\2)", line))
    )


def changed_unseen(difference: Difference) -> bool:
    """Whether what an operator in place kept was changed by `.data`, without which the sides agree."""
    return (
        difference.what in ("value", "grad")
        and re.search(r"\w_\((?s:.*)\.data\.\w+_\(", text(difference)) is not None
        and agree_without(difference, r"\.data\.\w+_\(")
    )


def made_of_the_new_shape(difference: Difference) -> bool:
    """Whether the shape of what a view shows other numbers of was changed in place afterwards, without which the sides agree."""
    change = r"\.(t|transpose|swap\w+|squeeze|unsqueeze|as_strided)_\("
    return (
        difference.what in ("value", "grad", "shape")
        and re.search(r"(\.(conj|real|imag|mH|H)\b|view_as_|adjoint)(?s:.*)" + change, text(difference)) is not None
        and agree_without(difference, change)
    )


def freed_by_zeros(difference: Difference) -> bool:
    """Whether a backward through a second derivative that is a graph of zeros in PyTorch has freed the first graph there."""
    return (
        refused_by(difference, "backward through the graph a second time", by="reference")
        and re.search(rf"({IN_PIECES}|abs|sign)(?s:.*)create_graph=True", text(difference)) is not None
        and agree(difference, kept)
    )


OPERANDS = re.compile(r"(\w+_\(|[-+*/]= )([^()\n]*)")


def cloned(line: str) -> str:
    """A statement whose changes in place are by copies of their operands."""
    return OPERANDS.sub(lambda found: found[1] + re.sub(r"\b([a-z]\d+|[a-z])\b", r"\1.clone()", found[2]), line)


def with_itself(difference: Difference) -> bool:
    """Whether PyTorch refuses to differentiate an operator in place by its own target, perhaps before hooks run."""
    if refused_by(difference, "modified by an inplace", by="reference"):
        if refused_by(difference, "'allow_mutation_on_saved_tensors' context"):  # for what is behind it
            return True
        changes = any(map(OPERANDS.search, difference.statements))
        return changes and (as_with_copies(difference) or wholly_agree(difference, cloned))
    return (
        difference.where.startswith("log")
        and any("modified by an inplace" in there for there, _ in difference.refusals)
        and agree(difference, cloned)
    )


SET = re.compile(r"\.set_\((\w+\.(?:untyped_)?storage\(\))\)")


def beyond_the_memory(difference: Difference) -> bool:
    """Whether PyTorch kept the strides of a tensor that was set to a storage of as many elements, and reads beyond it."""
    laid_out = r".set_(\1, 0, (\1.size(),), (1,))"
    return SET.search(text(difference)) is not None and wholly_agree(difference, lambda line: SET.sub(laid_out, line))


def with_parts_apart(line: str) -> str:
    """A statement whose parts by unsafe_chunk have memory of their own."""
    return re.sub(r"\.unsafe_(chunk|split)\((.*)\)\[(.*)\]", r".\1(\2)[\3] * 1", line)


def part_of_its_own(difference: Difference) -> bool:
    """Whether PyTorch takes a changed view of a part for one of the whole's memory, of which the part's gradient has none."""
    return refused_by(difference, "setStorage: sizes", by="reference") and agree(difference, with_parts_apart)


def part_given_other_memory(difference: Difference) -> bool:
    """Whether a view of a part that `.data` gave memory without the rest of the whole is used after a change."""
    refused = refused_by(difference, "that its base has been given")
    return refused and ".data = " in text(difference) and agree(difference, with_parts_apart)


def copied_by_contiguous(difference: Difference) -> bool:
    """Whether a result lies otherwise in PyTorch, where `contiguous()` therefore copies it, and copies make no difference."""
    if ".contiguous()" not in text(difference):
        return False
    operands = re.findall(r"\b(\w+)\.contiguous\(\)", text(difference))
    sides = there(difference), executed(difference)[0]
    known = [name for name in operands if name in sides[1]]  # others have no name, or one in a function alone
    lies = [[side[name].is_contiguous() for name in known] for side in sides]
    return (not known or lies[0] != lies[1]) and agree(
        difference, lambda line: line.replace(".contiguous()", ".clone()")
    )


NOT_OF_PAIRS = r"[Tt]ensor must have (a last dimension (of size 2|with stride 1)|one or more dim)|stride divisible by 2"


def made_again_of_another_shape(difference: Difference) -> bool:
    """Whether PyTorch makes a view as complex numbers again of a base that has another shape by now."""
    return re.search(NOT_OF_PAIRS, getattr(difference.reference, "message", "")) is not None


def beyond_nothing(difference: Difference) -> bool:
    """Whether an index beyond a tensor without elements is refused."""
    called = re.search(r"\b(index_(?:add|copy|fill))_?\(", statement(difference))
    refused = refused_by(difference, "is out of bounds for dimension")
    return refused and called is not None and empty(called[1], difference)


def exponents_that_wrap(name: str, difference: Difference) -> bool:
    """Whether derivatives of an operator differ by small integers as exponents, and agree where those are floating-point numbers."""
    if difference.where[0] not in "gt" or f"{name}(" not in text(difference):
        return False
    return agree(difference, lambda line: re.sub(r"torch\.u?int\d+", "torch.float64", line))


def beside_a_number(difference: Difference) -> bool:
    """Whether a slope of xlogy or xlog1py beside a number that is NaN is that beside a tensor here."""
    if difference.where[0] not in "gt":
        return False
    number = re.compile(r"(xlog(?:1p)?y\(.*, )(float\('nan'\))\)")
    return agree(difference, lambda line: number.sub(r"\1torch.tensor(\2, dtype=torch.float64))", line))


def cut_to_a_byte(difference: Difference) -> bool:
    """Whether what PyTorch makes a byte first, where bytes are to be written, is no truth there: NaN, and what a byte cannot hold."""
    if re.search(r"\ball\(.*out=", text(difference)) is None:
        return False
    return agree(difference, lambda line: re.sub(r"\ball\((\w+)", r"all((\1 != 0)", line))


def infinite_behind_cumprod(difference: Difference) -> bool:
    """Whether a gradient is NaN by a product of an infinite one and a 0 among cumprod's factors, as it is not without a 0."""
    where = apart(difference)
    if where is None or not np.all(np.isnan(np.asarray(difference.subject)[where])):
        return False
    return agree(difference, lambda line: re.sub(r"\.cumprod(_?)\(", r".exp\1().cumprod\1(", line))


NEGATIVE = {r"\.neg(ative)?_\(\)": r"\g<0>.add_(0)", r"\.neg(ative)?\(\)|torch\.neg(ative)?\([^()]*\)": r"\g<0>.add(0)"}


def without_negative_zeros(line: str) -> str:
    """A statement that makes 0 of each -0 that is a negative."""
    for call, added in NEGATIVE.items():
        line = re.sub(call, added, line)
    return line


def zero_of_a_negative(difference: Difference) -> bool:
    """Whether complex numbers differ by the sign of a part that is 0 in a negative, which tells two roots apart."""
    made = difference.what in ("value", "grad") and "complex" in text(difference)
    return made and agree(difference, without_negative_zeros)


IN_PLACE = re.compile(r"(?m)^(\s*)(return )?([\w.()]+)\.(\w+)_\((.*)\)$")


def out_of_place(line: str) -> str:
    """A statement whose changes in place are results, with the names of what they changed."""
    return IN_PLACE.sub(
        lambda found: f"{found[1]}{found[2] or f'{found[3]} = '}{found[3]}.{found[4]}({found[5]})", line
    )


def tangent_of_all_samples(difference: Difference) -> bool:
    """Whether PyTorch refuses to change a tensor in place for its tangent, which is that of all samples, and not else."""
    refused = refused_by(difference, "vmap: inplace arithmetic", by="reference")
    forward = re.search(r"\b(jvp|jacfwd|hessian|linearize)\(", text(difference)) is not None
    return refused and forward and "vmap(" in statement(difference) and agree(difference, out_of_place)


def still_retained(difference: Difference) -> bool:
    """Whether a tensor that retains its gradient, and whose shape was changed in place, has the newer one here."""
    changed = r"\.(t|transpose|swap\w+|squeeze|unsqueeze|as_strided)_\("
    retains = re.search(r"retain_grad\(|inputs=", text(difference)) is not None
    told = retains and re.search(changed, text(difference)) is not None
    return told and (difference.what == "grad" or ".grad" in difference.where) and agree_without(difference, changed)


def special_without_derivative(difference: Difference) -> bool:
    """Whether a special function drops its gradient in PyTorch."""
    dropped = difference.what in ("requires_grad", "is_leaf") or difference.reference is None
    return "torch.special." in text(difference) and dropped


DECLARED: tuple[Declared, ...] = (
    Declared("`special.*` functions without a derivative", special_without_derivative),
    Declared("gradients of `func.linearize`", linearized),
    Declared("a third derivative of `norm` and `renorm`", third_of_norm),
    Declared("gradient of `matrix_exp` where what comes from above is larger than the matrix", gradient_of_matrix_exp),
    Declared(
        "an operator that PyTorch's own formulas apply in place",
        lambda d: refused_by(d, "is being called inside the PyTorch framework", by="reference"),
    ),
    Declared("forward mode of `logcumsumexp`", digits_of_logcumsumexp),
    Declared("gradients of `binary_cross_entropy` by its target", saturated),
    Declared("a tangent given to `make_dual` and changed with its dual in place", written_into_a_tangent),
    Declared("a third derivative of `prod` at 0", third_of_prod),
    Declared("derivatives by `torch.func` and tangents that do not depend on what requires grad", independent),
    Declared("in-place operators inside `vmap` whose result has more dimensions than a sample", more_than_a_sample),
    Declared("`set_` while gradients are recorded", lambda d: refused_by(d, "set_: cannot", "set_: the source")),
    Declared("`masked_fill_`, `index_put_`, `triu_`, `tril_` of expanded tensors", several_at_one_place),
    Declared("a change in place of a view whose base", follows_its_base),
    Declared(
        "a change in place of a view whose base",
        lambda d: (
            refused_by(d, "you can only change requires_grad flags of leaf") and "requires_grad_(False)" in statement(d)
        ),
    ),
    Declared(
        "a recorded change in place of a part of a tensor that overlaps itself",
        lambda d: refused_by(d, "several of whose elements lie on one place in memory"),
    ),
    Declared("which part of a complex number is infinite", not_a_number),
    Declared("indices beyond a dimension beside others", half_written),
    Declared("in-place operations whose operands share part of their memory", copied_from_itself),
    Declared("a view made by `view_as_complex` whose base", made_again_of_another_shape),
    Declared("`index_add`, `index_copy`, `index_fill` of a tensor without elements", beyond_nothing),
    Declared("gradients of `prod` and `cumprod` of infinities", infinite_behind_cumprod),
    Declared("gradient of `special.zeta` by what is added to", partial(exponents_that_wrap, "zeta")),
    Declared("gradient of `ldexp` by its first", partial(exponents_that_wrap, "ldexp")),
    Declared("slopes of `xlogy` and `xlog1py` beside a number that is NaN", beside_a_number),
    Declared("`all(out=...)` of bytes, of NaN", cut_to_a_byte),
    Declared("the sign of 0 as a part of a complex number that `neg` makes", zero_of_a_negative),
    Declared("an in-place operator inside `vmap` around forward mode", tangent_of_all_samples),
    Declared("gradients that a refused backward leaves", half_run),
    Declared("`set_(storage)` of a tensor of as many elements", beyond_the_memory),
    Declared("a saved tensor to which `.data` gave another shape", lambda d: refused_by(d, "which `.data` gave it")),
    Declared("a change of a view of numbers' parts, of a part by `unsafe_chunk`", part_of_its_own),
    Declared("a view of a part by `unsafe_chunk` that `.data` gave other memory", part_given_other_memory),
    Declared(
        "the operand of three dimensions of `a @ b`",
        lambda d: d.what == "alive" and re.search(r" @ (?s:.*)\.grad = ", text(d)) is not None,
    ),
    Declared("the operand of three dimensions of `a @ b`", product_of_the_old),
    Declared("a saved tensor that is changed by `.data`", changed_unseen),
    Declared("the shape of what was viewed, changed in place afterwards", made_of_the_new_shape),
    Declared("gradient of what is linear in pieces", freed_by_zeros),
    Declared(
        "the product of two conjugated vectors",
        lambda d: (
            refused_by(d, "not supported for conjugate view tensors", by="reference")
            or (refused_by(d, "numpy() on Tensor that has conjugate bit set", by="reference") and " @ " in text(d))
        ),
    ),
    Declared(
        "a second backward through `lerp`",
        lambda d: refused_by(d, "the graph was freed at CopySlices") and "index_add_(" in text(d),
    ),
    Declared(
        "a change in place of a view whose base",
        lambda d: d.what == "grad" and d.reference is None and ".retain_grad()" in text(d),
    ),
    Declared("a second backward through `lerp`", lambda d: refused_by(d, "the graph was freed at LerpBackward")),
    Declared("`view_as_complex` of an odd offset", lambda d: refused_by(d, "storage_offset divisible", by="reference")),
    Declared(
        "gradient of a leaf whose shape was changed in place",
        lambda d: refused_by(d, "invalid gradient for a leaf: got shape", "for a leaf: `.data` gave it the shape"),
    ),
    Declared(
        "strides of a transposed or expanded tensor without elements",
        lambda d: refused_by(d, "be divisible by", "self.stride(-1) must be 1", by="reference"),
    ),
    Declared("names in the graph of views that are changed afterwards", view_name),
    Declared("names in the graph", node_name),
    Declared("`detach_()` of the result of a layer", detached_result),
    Declared("`x.mul_(x)` and the like with gradient", with_itself),
    Declared("`.grad` of what retains it, after `transpose_`", still_retained),
    Declared("strides of results of operands that are not contiguous", copied_by_contiguous),
    Declared(
        "strides of results of operands that are not contiguous",
        lambda d: refused_by(d, "view size is not compatible with", by="reference"),
    ),
    Declared(
        "in-place operations whose operands share part of their memory",
        lambda d: refused_by(d, "single memory location", "some elements of the input", by="reference"),
    ),
)


def declared(difference: Difference) -> bool:
    """Whether the page of differences names this one."""
    return any(entry.applies(difference) for entry in (*DECLARED, *GRAPHS, *OPERATORS))
