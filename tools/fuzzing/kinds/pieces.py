"""Pieces of programs that several kinds use: tensors to begin with, views, changes in place, arithmetic, gradients."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from typing import Any

from ..program import Writer

SHAPES = ((2, 3), (3, 2), (4,), (2, 2, 2), (3,), (1, 3), (), (2, 1, 3), (6,), (0, 2), (3, 3))
Piece = Callable[[Writer, str], str]  # given a tensor's name, an expression


def literal(shape: tuple[int, ...], numbers: Iterator[float]) -> str:
    """Nested lists of that shape."""
    if not shape:
        return repr(next(numbers))
    return f"[{', '.join(literal(shape[1:], numbers) for _ in range(shape[0]))}]"


def leaf(w: Writer, grad: float = 0.7, complex_share: float = 0.15, dtype: str = "torch.float64") -> str | None:
    """A tensor of consecutive numbers, perhaps complex, perhaps requiring grad."""
    shape = w.rng.choice(SHAPES)
    text = f"torch.tensor({literal(shape, itertools.count(1.0))}, dtype={dtype})"
    if w.rng.random() < complex_share:
        text = f"torch.complex({text}, {w.rng.choice(('1.', '-0.5'))} * {text})"
    if w.rng.random() < 0.05:
        text += ".view(-1)"  # a leaf that is a view
    if w.rng.random() < grad and not in_inference(w):  # one that requires grad and is an inference tensor: see declared
        text += ".requires_grad_()"
    return w.let(text)


def in_inference(w: Writer) -> bool:
    """Whether what is drawn runs in inference mode."""
    return bool(w.execution.side.library.is_inference_mode_enabled())


EXACTLY = re.compile(r"\.(fill|zero|neg|mul|add|sub|fill_diagonal)_\((-?[\d.]+)?\)$|\] = -?[\d.]+$")
RESHAPES = re.compile(r"\.(t|transpose|swap\w+|squeeze|unsqueeze|as_strided|resize|resize_as)_\(")


def spoils(w: Writer, x: str, text: str) -> bool:
    """Whether a change has no one answer: of an inference tensor outside of inference mode, which is refused when it is done
    (and one that requires grad is taken for a constant, detach_ does nothing, and other memory makes it half of one);
    or of the shape of what requires grad, unrecorded, whose gradient then has the former shape or the present one; or of a
    leaf that is a view, or a view of it, unrecorded: see declared; or of whether what others view requires grad, or of its memory;
    or with rounding, of what others see the bits of."""
    tensor, torch = value(w, x), w.execution.side.library
    refused = tensor.is_inference() and not in_inference(w)
    unrecorded = "no_grad" in text or not torch.is_grad_enabled() or in_inference(w)
    about = [value(w, name) for name in {x, *re.findall(r"\bv\d+\b", text)} & set(w.tensors())]
    if re.search(r"requires_grad|detach_\(|\.(data|grad) = |\.set_\(", text) and (
        in_inference(w) or any(each.is_inference() for each in about)
    ):
        return True
    if re.search(r"requires_grad.*False|detach_\(", text) and tensor.requires_grad and viewed(w, x):
        return True
    if ".set_(" in text and unrecorded and viewed(w, x):
        return True
    if not EXACTLY.search(text) and any(value(w, name).dtype == torch.int64 for name in on_memory_of(w, x)):
        return True
    base = tensor._base
    leaf = base is not None and tensor.requires_grad and not base.requires_grad
    return bool(refused or (tensor.requires_grad and unrecorded and (leaf or RESHAPES.search(text))))


def value(w: Writer, name: str) -> Any:
    """The tensor of that name, on the reference side."""
    return w.names[name]


def dim(w: Writer, name: str) -> int:
    """A dimension of the tensor, counted from either end."""
    rank = value(w, name).dim()
    return w.rng.randrange(-rank, rank) if rank else 0


def size(w: Writer, name: str, d: int) -> int:
    """The tensor's size there, or 1."""
    x = value(w, name)
    return x.shape[d] if x.dim() else 1


def index(w: Writer, name: str, basic: bool = False) -> str:
    """An index for the tensor."""
    x, rng = value(w, name), w.rng
    parts: list[str] = []
    for extent in x.shape[: rng.randint(0, x.dim())]:
        kinds = ["i", "slice", "all", "step"] if basic or rng.random() < 0.75 else ["list", "mask", "negative"]
        parts.append(index_part(w, rng.choice(kinds), extent))
    if rng.random() < 0.2:
        parts.insert(rng.randint(0, len(parts)), "None")
    if rng.random() < 0.2:
        parts.insert(rng.randint(0, len(parts)), "...")
    return ", ".join(parts) if parts else "..."


def index_part(w: Writer, kind: str, extent: int) -> str:
    """The index of one dimension."""
    rng = w.rng
    i = rng.randrange(extent) if extent else 0
    if kind == "i":
        return str(i)
    if kind == "all":
        return ":"
    if kind == "slice":
        return f"{i}:{rng.choice(('', str(extent), str(i + 1)))}"
    if kind == "step":
        return f"{rng.choice(('', '1'))}::2"
    if kind == "list":
        return str([rng.randrange(extent) for _ in range(rng.randint(1, 3))] if extent else [])
    if kind == "mask":
        return f"torch.tensor({[rng.random() < 0.6 for _ in range(extent)]})" if extent else ":"
    return f"torch.tensor({[rng.randrange(-extent, extent) for _ in range(2)]})" if extent else ":"


def split_shape(w: Writer, name: str) -> tuple[int, ...]:
    """Another shape of as many elements."""
    total = value(w, name).numel()
    shapes = [(total,), (1, total), (total, 1), (-1,)]
    shapes += [(d, total // d) for d in (2, 3) if total and total % d == 0]
    shapes += [(2, total // 4, 2)] if total and total % 4 == 0 else []
    return w.rng.choice(shapes)


def permutation(w: Writer, name: str) -> tuple[int, ...]:
    """An order of the tensor's dimensions."""
    order = list(range(value(w, name).dim()))
    w.rng.shuffle(order)
    return tuple(order)


def strided(w: Writer, name: str) -> str:
    """Arguments of as_strided within the tensor's memory."""
    count = value(w, name).numel()
    choices = [((2, 2), (1, 1)), ((2,), (2,)), ((1, 2), (2, 1)), ((), ()), ((3,), (1,)), ((2, 2), (2, 1))]
    shape, steps = w.rng.choice([c for c in choices if sum((s - 1) * t for s, t in zip(*c)) < count] or [((0,), (1,))])
    return f"{shape}, {steps}"


def expanded(w: Writer, name: str) -> tuple[int, ...]:
    """A shape that the tensor expands to."""
    shape = tuple(w.rng.choice((-1, s)) if s != 1 else w.rng.choice((1, 2, 3)) for s in value(w, name).shape)
    return (2, *shape) if w.rng.random() < 0.4 else shape


VIEWS: dict[str, Piece] = {
    "index": lambda w, x: f"{x}[{index(w, x, basic=True)}]",
    "take": lambda w, x: f"{dense(w, x)}[{index(w, x)}]",
    "transpose": lambda w, x: f"{x}.transpose({dim(w, x)}, {dim(w, x)})",
    "permute": lambda w, x: f"{x}.permute({permutation(w, x)})",
    "t": lambda w, x: f"{x}.t()",
    "T": lambda w, x: f"{x}.{w.rng.choice(('T', 'mT', 'mH', 'H'))}",
    "view": lambda w, x: f"{x}.view({split_shape(w, x)})",
    "reshape": lambda w, x: f"{x}.reshape({split_shape(w, x)})",
    "expand": lambda w, x: f"{x}.expand({expanded(w, x)})",
    "squeeze": lambda w, x: f"{x}.squeeze({w.rng.choice(('', str(dim(w, x))))})",
    "unsqueeze": lambda w, x: f"{x}.unsqueeze({dim(w, x)})",
    "select": lambda w, x: f"{x}.select({(d := dim(w, x))}, {w.rng.randrange(-1, max(1, size(w, x, d)))})",
    "narrow": lambda w, x: f"{x}.narrow({(d := dim(w, x))}, {w.rng.randint(0, 1)}, {max(0, size(w, x, d) - 1)})",
    "diagonal": lambda w, x: f"{x}.diagonal({w.rng.randint(-1, 1)}, {dim(w, x)}, {dim(w, x)})",
    "unfold": lambda w, x: f"{x}.unfold({dim(w, x)}, {w.rng.randint(1, 2)}, {w.rng.randint(1, 2)})",
    "as_strided": lambda w, x: f"{x}.as_strided({strided(w, x)}, {w.rng.choice(('0', f'{x}.storage_offset()'))})",
    "as_strided plain": lambda w, x: f"{x}.as_strided({strided(w, x)})",
    "flatten": lambda w, x: f"{x}.flatten()",
    "unflatten": lambda w, x: f"{x}.unflatten({(d := dim(w, x))}, (1, {size(w, x, d)}))",
    "movedim": lambda w, x: f"{x}.movedim({dim(w, x)}, {dim(w, x)})",
    "real": lambda w, x: f"{x}.{w.rng.choice(('real', 'imag'))}",
    "view_as_real": lambda w, x: f"torch.view_as_real({x})",
    "view_as_complex": lambda w, x: f"torch.view_as_complex({x})",
    "conj": lambda w, x: f"{x}.conj()",
    "resolve": lambda w, x: f"{x}.{w.rng.choice(('resolve_conj', 'resolve_neg', 'contiguous', 'conj_physical'))}()",
    "detach": lambda w, x: f"{x}.detach()",
    "data": lambda w, x: f"{x}.data",
    "view_as": lambda w, x: f"{x}.view_as({x})",
    "expand_as": lambda w, x: f"{x}.expand_as({w.rng.choice(w.tensors())})",
    "dtype": lambda w, x: (
        f"{x}.view({w.rng.choice(('torch.int64', 'torch.complex128', 'torch.float64')[0 if exact(w, x) else 2 :])})"
    ),
    "piece": lambda w, x: (
        f"{x}.{w.rng.choice(('split(1', 'chunk(2', 'tensor_split(2', 'chunk(2' if in_inference(w) else 'unsafe_chunk(2'))}, {dim(w, x)})[{w.rng.choice((0, -1))}]"
    ),
    "unbind": lambda w, x: f"{x}.unbind({dim(w, x)})[0]",
    "ravel": lambda w, x: f"{x}.{w.rng.choice(('ravel', 'adjoint', 'positive', 'alias_copy', 'clone'))}()",
    "to": lambda w, x: f"{x}.to({x}.dtype)",
}

NUMBERS = ("2", "0.5", "-1", "3.", "True", "1j")


def apart(a: Any, b: Any) -> bool:
    """Whether two tensors share no memory, or are the same elements in the same order."""
    if a.untyped_storage().data_ptr() != b.untyped_storage().data_ptr():
        return True
    return bool((a.data_ptr(), a.shape, a.stride(), a.dtype) == (b.data_ptr(), b.shape, b.stride(), b.dtype))


def overlaps(x: Any) -> bool:
    """Whether several elements of the tensor are one place in memory, without a stride of 0 that shows it."""
    steps = sorted((step, extent) for step, extent in zip(x.stride(), x.shape) if extent > 1)
    reach = 0
    for step, extent in steps:
        if 0 < step <= reach:
            return True
        reach += step * (extent - 1)
    return False


def replaceable(w: Writer, x: str) -> bool:
    """Whether other memory can be put below a tensor without that its history then tells of memory that is not its own."""
    tensor = value(w, x)
    return not (tensor._is_view() or (tensor.is_leaf and tensor.requires_grad))


def same_kind(w: Writer, x: str) -> str:
    """A tensor that may lie in the place of another: where its history depends on them, of the same dtype and shape."""
    tensor, others = value(w, x), [(name, value(w, name)) for name in w.tensors()]
    if not tensor.requires_grad:
        return w.rng.choice([name for name, other in others if other.dtype == tensor.dtype])
    return w.rng.choice([name for name, other in others if kind_of(other) == kind_of(tensor)])


def kind_of(tensor: Any) -> tuple[Any, Any]:
    """Dtype and shape."""
    return tensor.dtype, tuple(tensor.shape)


def viewed(w: Writer, x: str) -> bool:
    """Whether others are views of the tensor: that it comes to require grad they notice when they are changed, or never."""
    return len(on_memory_of(w, x)) > 1


def smaller_shape(w: Writer, x: str) -> str:
    """A shape of no more elements than the tensor has."""
    memory = min(value(w, x).numel(), value(w, x).untyped_storage().nbytes() // value(w, x).element_size())
    fitting = [text for text, count in (("2", 2), ("3, 2", 6), ("1, 2", 2), ("4", 4)) if count <= memory]
    return w.rng.choice(fitting or ["0"])


def other(w: Writer, x: str | None = None) -> str:
    """Another tensor of the program, or a number; none that shares a part of x's memory."""
    names = [name for name in w.tensors() if x is None or apart(value(w, x), value(w, name))]
    return w.rng.choice(names) if names and w.rng.random() < 0.6 else w.rng.choice(NUMBERS[:4])


def dense_other(w: Writer) -> str:
    """Another tensor of the program, contiguous, or a number."""
    text = other(w)
    return dense(w, text) if text in w.names else text


def on_memory_of(w: Writer, x: str) -> list[str]:
    """Names of the tensors that share the memory of one, its own among them."""
    place = value(w, x).untyped_storage().data_ptr()
    return [name for name in w.tensors() if value(w, name).untyped_storage().data_ptr() == place]


def stranger(w: Writer, x: str) -> str:
    """Another tensor of the program, on other memory, or a copy."""
    shared, name = on_memory_of(w, x), w.rng.choice(w.tensors())
    return f"{name}.clone()" if name in shared else name


def along(w: Writer, x: str, count: int) -> str:
    """A dimension and an index tensor for it."""
    d = dim(w, x)
    extent = max(1, size(w, x, d))
    return f"{d}, torch.tensor({[w.rng.randrange(extent) for _ in range(count)]})"


CHANGES: dict[str, Piece] = {
    "add_": lambda w, x: f"{x}.add_({other(w, x)})",
    "mul_": lambda w, x: f"{x}.mul_({other(w, x)})",
    "sub_": lambda w, x: f"{x}.sub_({other(w, x)})",
    "div_": lambda w, x: f"{x}.div_({other(w, x)})",
    "augmented": lambda w, x: f"{x} {w.rng.choice(('+=', '*=', '-=', '/='))} {other(w, x)}",
    "copy_": lambda w, x: f"{x}.copy_({other(w, x)})",
    "set item": lambda w, x: f"{x}[{index(w, x, basic=w.rng.random() < 0.6)}] = {other(w, x)}",
    "change item": lambda w, x: (
        f"{x}[{index(w, x, basic=w.rng.random() < 0.6)}] {w.rng.choice(('+=', '*='))} {other(w, x)}"
    ),
    "zero_": lambda w, x: f"{x}.zero_()",
    "fill_": lambda w, x: f"{x}.fill_({other(w, x)})",
    "unary": lambda w, x: (
        f"{x}.{w.rng.choice(('sin_', 'exp_', 'neg_', 'abs_', 'relu_', 'sigmoid_', 'square_', 'tanh_', 'conj_physical_', 'reciprocal_', 'sqrt_', 'round_', 'sgn_'))}()"
    ),
    "pow_": lambda w, x: f"{x}.pow_({w.rng.choice(('2', '3', '1', '0', '0.5'))})",
    "clamp_": lambda w, x: f"{x}.clamp_({w.rng.choice(('0, 2', 'min=2', 'max=3.'))})",
    "masked_fill_": lambda w, x: f"{x}.masked_fill_({x} {w.rng.choice(('==', '!='))} 2, {w.rng.choice(NUMBERS)})",
    "index_fill_": lambda w, x: f"{x}.index_fill_({along(w, x, 1)}, {w.rng.choice(NUMBERS)})",
    "index_add_": lambda w, x: f"{x}.index_add_({along(w, x, max(1, size(w, x, 0)))}, {stranger(w, x)})",
    "index_copy_": lambda w, x: f"{x}.index_copy_({along(w, x, max(1, size(w, x, 0)))}, {stranger(w, x)})",
    "addcmul_": lambda w, x: f"{x}.addcmul_({other(w, x)}, {other(w, x)}, value=0.5)",
    "lerp_": lambda w, x: f"{x}.lerp_({other(w, x)}, 0.25)",
    "cumsum_": lambda w, x: f"{x}.{w.rng.choice(('cumsum_', 'cumprod_'))}({dim(w, x)})",
    "t_": lambda w, x: f"{x}.t_()",
    "transpose_": lambda w, x: (
        f"{x}.{w.rng.choice(('transpose_', 'swapdims_', 'swapaxes_'))}({dim(w, x)}, {dim(w, x)})"
    ),
    "squeeze_": lambda w, x: f"{x}.squeeze_()",
    "unsqueeze_": lambda w, x: f"{x}.unsqueeze_({dim(w, x)})",
    "as_strided_": lambda w, x: (
        x if viewed(w, x) and not value(w, x)._is_view() else f"{x}.as_strided_({strided(w, x)})"
    ),
    "data": lambda w, x: f"{x}.data.{w.rng.choice(('mul_(2)', 'add_(1)', 'zero_()'))}",
    "fill_diagonal_": lambda w, x: f"{x}.fill_diagonal_({w.rng.choice(NUMBERS[:4])})",
    "tril_": lambda w, x: f"{x}.{w.rng.choice(('tril_', 'triu_'))}()",
    "put_": lambda w, x: f"{x}.put_(torch.tensor([0]), torch.tensor([5.], dtype={x}.dtype))",
}
RARE_CHANGES: dict[str, Piece] = {
    "detach_": lambda w, x: f"{x}.detach_()",
    "requires_grad_": lambda w, x: f"{x}.requires_grad_({'False' if viewed(w, x) else w.rng.choice(('', 'False'))})",
    "resize_": lambda w, x: f"{x}.resize_({smaller_shape(w, x)})",
    "resize_as_": lambda w, x: (
        f"{x}.resize_as_({w.rng.choice([n for n in w.tensors() if value(w, n).numel() <= value(w, x).numel()])})"
    ),
    "set_": lambda w, x: (
        f"{x}.set_({w.rng.choice(w.tensors())}{w.rng.choice(('', '.detach()', '.storage()'))})"
        if replaceable(w, x)
        else x
    ),
    "data =": lambda w, x: (
        x if value(w, x)._is_view() else f"{x}.data = {same_kind(w, x)}{w.rng.choice(('', '.detach()', '.clone()'))}"
    ),
    "requires_grad =": lambda w, x: f"{x}.requires_grad = {not viewed(w, x) and w.maybe(0.5)}",
    "grad =": lambda w, x: (
        f"{x}.grad = {w.rng.choice(('None', 'torch.ones_like(' + x + ')', w.rng.choice(w.tensors()) + '.clone()'))}"
    ),
    "retain_grad": lambda w, x: f"{x}.retain_grad()",
    "share": lambda w, x: f"{x}.swapaxes_(0, {dim(w, x)})",
}
RESULTS: dict[str, Piece] = {
    "mul": lambda w, x: f"{x} * {dense_other(w)}",
    "add": lambda w, x: f"{x} + {dense_other(w)}",
    "div": lambda w, x: f"{x} / {dense_other(w)}",
    "square": lambda w, x: f"{x} * {x}",
    "unary": lambda w, x: (
        f"{x}.{w.rng.choice(('sin', 'exp', 'square', 'neg', 'abs', 'sigmoid', 'tanh', 'relu', 'sqrt', 'clone'))}()"
    ),
    "pow": lambda w, x: f"{x} ** {w.rng.choice(('2', '3', '1', '0.5'))}",
    "sum": lambda w, x: f"{x}.{w.rng.choice(('sum', 'mean', 'cumsum', 'var', 'softmax'))}({dim(w, x)})",
    "cat": lambda w, x: f"torch.{w.rng.choice(('cat', 'stack'))}([{x}, {operand(w)}])",
    "where": lambda w, x: f"torch.where({x} == 2, {x}, {dense_other(w)})",
    "matmul": lambda w, x: f"{x} @ {operand(w)}",
    "dot": lambda w, x: f"{x}.mv({operand(w)})",
}


def dense(w: Writer, x: str) -> str:
    """The name of the tensor, or of a contiguous copy: results of others lie in memory in orders that differ."""
    return x if value(w, x).is_contiguous() else w.let(f"{x}.contiguous()") or x


def operand(w: Writer) -> str:
    """A tensor of the program."""
    return dense(w, w.rng.choice(w.tensors()))


def pick(w: Writer, table: dict[str, Piece], x: str) -> str:
    """A piece from a table, for the tensor."""
    return w.rng.choice(list(table.values()))(w, dense(w, x) if table is RESULTS else x)


def tensor(w: Writer) -> str:
    """A tensor of the program, the newer ones more often."""
    names = sorted(w.tensors(), key=lambda name: int(name[1:] or 0) if name[1:].isdigit() else 0)
    names = [name for name in names if tame(w, name)] or names
    return names[max(w.rng.randrange(len(names)), w.rng.randrange(len(names)))]


def tame(w: Writer, name: str) -> bool:
    """Whether the tensor's finite elements are not so large that their sine or exponential has few right digits."""
    x = value(w, name).detach()
    if not x.numel() or not (x.is_floating_point() or x.is_complex()):
        return True
    sizes = x.abs().nan_to_num(0.0, 0.0, 0.0)
    return float(sizes.max()) < 1e4


def exact(w: Writer, name: str) -> bool:
    """Whether all elements are multiples of a quarter, which every way of computing them gives to the bit."""
    x = value(w, name).detach()
    return bool(not x.is_floating_point() or (x * 4 == (x * 4).round()).all())


def loss(w: Writer, name: str) -> str:
    """An expression that is a real number, from the tensor."""
    forms = ["({0} * {0}).sum()", "{0}.sum()", "({0} * 2).sum()"]
    form = w.rng.choice([*forms, "{0}.sin().sum()"] if tame(w, name) else forms)
    text = form.format(name)
    return f"{text}.abs()" if value(w, name).is_complex() else text


def gradients(w: Writer) -> None:
    """Derivatives of something that requires grad, once or twice, by backward() or by grad()."""
    tracked = [name for name in w.tensors() if value(w, name).requires_grad]
    if not tracked:
        return
    top = w.let(loss(w, w.rng.choice(tracked[-4:])), "s")
    if top is None:
        return
    if w.rng.random() < 0.55:
        w.do(f"{top}.backward({w.rng.choice(('', '', 'retain_graph=True'))})")
        return
    inputs = w.rng.sample(tracked, min(len(tracked), w.rng.randint(1, 3)))
    create = w.rng.random() < 0.5
    got = w.let(f"torch.autograd.grad({top}, [{', '.join(inputs)}], allow_unused=True, create_graph={create})", "g")
    if got is not None and create:
        terms = [
            f"{got}[{i}].abs().square().sum()" for i, g in enumerate(w.names[got]) if g is not None and g.requires_grad
        ]
        if terms:
            w.do(f"({' + '.join(terms)}).backward()")
