"""Operators one by one: dtypes, layouts, special values, numbers, ``out=``, in-place forms, and all derivatives."""

from __future__ import annotations

import math
from typing import Any

from ..program import Writer
from .base import Kind, with_torch
from .samples import Sample, sample, spelled, tied

FLOATS = ("float64", "float64", "float32", "float16", "bfloat16", "complex128", "complex64")
WHOLE = ("int64", "int32", "int16", "int8", "uint8", "bool")
NUMBERS = ("0.5", "1.0", "2.0", "-1.5", "3.0", "-2.0", "0.0", "1.5", "-0.25", "4.0", "0.75", "-1.0")
SPECIALS = (
    "float('nan')",
    "float('inf')",
    "-float('inf')",
    "-0.0",
    "1e30",
    "-1e-30",
    "0.5",
    "1.0",
    "-1.0",
    "6.0",
    "-3.0",
)
INTEGERS = ("0", "1", "2", "3", "-1", "-2", "5", "7", "100", "-128", "127", "255", "2147483647", "-2147483648")
SHAPES = ((3,), (2, 3), (), (0,), (2, 1), (1, 3), (2, 2, 2), (4,), (3, 3), (5, 1, 2), (40,))


def draw(w: Writer) -> None:
    """An operator applied to inputs, then one or two of the things that can be asked of it."""
    chosen = own(w) if w.maybe(0.5) else sample(w)
    if chosen is not None:
        ask(w, chosen)


def ask(w: Writer, chosen: Sample) -> None:
    """The call, and what is asked of its result."""
    for line in chosen.inputs:
        if not w.do(line):
            return
    result = w.let(chosen.call, "r")
    if result is None:
        if w.maybe(0.3):
            variant(w, chosen)
        return
    for _ in range(w.rng.randint(1, 2)):
        w.rng.choice((variant, first_order, second_order, forward_mode, first_order))(w, chosen)


def own(w: Writer) -> Sample:
    """A call of our own making: an operator from a table, with inputs of any dtype, layout and value."""
    unary, binary, reductions = tables()
    dtype = w.rng.choice(FLOATS if w.maybe(0.7) else WHOLE)
    grad = dtype in FLOATS and w.maybe(0.7)
    shape = w.rng.choice(SHAPES)
    inputs = [f"a = {tensor(w, shape, dtype, grad)}"]
    kind = w.rng.random()
    if kind < 0.35:
        return Sample(w.rng.choice(unary), inputs, ["a"], {})
    if kind < 0.75:
        second = w.rng.choice(INTEGERS[:7] + NUMBERS + SPECIALS[:3] + ("True", "2j"))
        if w.maybe(0.65):
            other = dtype if w.maybe(0.7) else w.rng.choice(FLOATS + WHOLE)
            second = "b"
            inputs.append(f"b = {tensor(w, broadcastable(w, shape), other, other in FLOATS and w.maybe(0.5))}")
        name = w.rng.choice(binary)
        if name in ("torch.searchsorted", "torch.bucketize"):
            inputs[0] = f"a = torch.tensor({sorted(w.rng.sample(range(100), 4))}, dtype=torch.{dtype})"
            return Sample(name, inputs, ["a", second] if name == "torch.searchsorted" else [second, "a"], {})
        return Sample(name, inputs, ["a", second] if w.maybe(0.9) else [second, "a"], {})
    keywords = {"dim": str(w.rng.randrange(-len(shape), len(shape)) if shape else 0)} if w.maybe(0.6) else {}
    if keywords and w.maybe(0.3):
        keywords["keepdim"] = "True"
    if w.maybe(0.1):
        keywords["dtype"] = f"torch.{w.rng.choice(FLOATS + WHOLE)}"
    name = w.rng.choice(reductions)
    if name == "torch.bincount" and dtype in ("int64", "int32"):
        inputs = [f"a = torch.tensor({nested(w, shape, INTEGERS[:9])}, dtype=torch.{dtype})"]  # it makes as many bins
    if tied(name):
        dtype = dtype if dtype != "bool" else "uint8"
        specials = dtype in FLOATS and not dtype.startswith("complex") and not name.endswith("mode") and w.maybe(0.3)
        inputs = [
            f"a = torch.tensor({apart(w, shape, dtype, specials)}, dtype=torch.{dtype}){'.requires_grad_()' * grad}"
        ]
    return Sample(name, inputs, ["a"], keywords)


def broadcastable(w: Writer, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape that goes with the other, mostly."""
    if w.maybe(0.08):
        return w.rng.choice(SHAPES)
    other = tuple(1 if w.maybe(0.25) else size for size in shape)
    return other[w.rng.randint(0, len(other)) :] if w.maybe(0.25) else other


def numbers(w: Writer, dtype: str) -> tuple[str, ...]:
    """What the elements are taken from."""
    if dtype == "bool":
        return ("True", "False")
    if dtype in WHOLE:
        return tuple(text for text in INTEGERS if fits(int(text), dtype))
    return NUMBERS + SPECIALS if w.maybe(0.3) and not dtype.startswith("complex") else NUMBERS


def fits(number: int, dtype: str) -> bool:
    """Whether an integer dtype has the number."""
    bits = int(dtype.lstrip("uint"))
    low, high = (0, 2**bits) if dtype[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1))
    return bool(low <= number < high)


def tensor(w: Writer, shape: tuple[int, ...], dtype: str, grad: bool) -> str:
    """An expression for a tensor, in any layout."""
    choices = numbers(w, dtype)
    layout = w.rng.random()
    base = shape
    if layout < 0.15 and len(shape) > 1:
        base = (*shape[:-2], shape[-1], shape[-2])
    elif layout < 0.25 and shape:
        base = (*shape[:-1], 2 * shape[-1])
    elif layout < 0.33 and shape and shape[0]:
        base = (1, *shape[1:])
    text = f"torch.tensor({nested(w, base, choices)}, dtype=torch.{dtype})"
    if dtype.startswith("complex") and w.maybe(0.8):
        text = f"({text} + 1j * torch.tensor({nested(w, base, choices)}, dtype=torch.{dtype}))"
    if base != shape or (layout < 0.15 and len(shape) > 1):
        text += ".transpose(-1, -2)" if layout < 0.15 else "[..., ::2]" if layout < 0.25 else f".expand({shape})"
    return text + (".requires_grad_()" if grad else "")


def nested(w: Writer, shape: tuple[int, ...], choices: tuple[str, ...]) -> str:
    """Nested lists of elements."""
    if not shape:
        return w.rng.choice(choices)
    return f"[{', '.join(nested(w, shape[1:], choices) for _ in range(shape[0]))}]"


def apart(w: Writer, shape: tuple[int, ...], dtype: str, specials: bool) -> str:
    """Nested lists of elements of which no two are equal."""
    size = math.prod(shape)
    texts = [
        str(number) if dtype in WHOLE else str(number / 2)
        for number in range(0 if dtype == "uint8" else -size, 2 * size)
    ]
    if specials:
        texts[:3] = ["float('nan')", "float('inf')", "-float('inf')"]
    chosen = iter(w.rng.sample(texts, size))

    def lists(rest: tuple[int, ...]) -> str:
        return f"[{', '.join(lists(rest[1:]) for _ in range(rest[0]))}]" if rest else next(chosen)

    return lists(shape)


def variant(w: Writer, chosen: Sample) -> None:
    """The method, the in-place form, or ``out=``."""
    name = chosen.name.rsplit(".", 1)[-1]
    rest = ", ".join([*chosen.arguments[1:], *(f"{key}={text}" for key, text in chosen.keywords.items())])
    first = chosen.arguments[0] if chosen.arguments else "a"
    choice = w.rng.random()
    if choice < 0.25:
        w.let(f"{first}.{name}({rest})", "r")
    elif choice < 0.6:
        w.let(f"{first}.clone()", "c")
        w.let(f"c{w.count}.{name}_({rest})", "r")
    else:
        out(w, chosen)


def out(w: Writer, chosen: Sample) -> None:
    """``out=`` of a right or a wrong dtype and shape, a view, or an input itself."""
    result: Any = w.names.get(f"r{w.count}")
    if not hasattr(result, "shape"):
        return
    shape, dtype = tuple(result.shape), result.dtype
    target = w.one(
        f"torch.zeros({shape}, dtype={dtype})",
        f"torch.zeros({shape}, dtype={dtype})",
        f"torch.zeros(0, dtype={dtype})",
        f"torch.zeros({shape}, dtype=torch.{w.rng.choice(FLOATS + WHOLE)})",
        f"torch.zeros({(*shape, 2)}, dtype={dtype})[..., 0]",
        f"torch.zeros({shape[::-1]}, dtype={dtype}).permute({tuple(reversed(range(len(shape))))})",
        f"torch.zeros({(1, *shape)}, dtype={dtype})",
        f"torch.zeros((1,), dtype={dtype}).expand({shape})",
        f"torch.zeros({shape}, dtype={dtype}, requires_grad={bool(chosen.inputs)})",
        "a.detach()"
        if chosen.name in ELEMENT_BY_ELEMENT and not any("requires_grad_()" in line for line in chosen.inputs)
        else f"torch.ones({shape}, dtype={dtype})",
    )
    name = w.let(target, "o")
    if name is not None:
        with w.block("torch.no_grad()"):
            w.let(spelled(chosen.name, chosen.arguments, {**chosen.keywords, "out": name}), "q")
            w.do(f"{name} = {name} * 1")


def differentiable(w: Writer, chosen: Sample) -> tuple[list[str], list[str]]:
    """Names of the inputs that require grad, and expressions of the outputs that do."""
    inputs = [line.split(" ")[0] for line in chosen.inputs]
    inputs = [name for name in inputs if getattr(w.names[name], "requires_grad", False)]
    result = next((name for name in sorted(w.names) if name[0] == "r" and name[1:].isdigit()), "")
    value = w.names.get(result)
    parts = (
        {f"{result}[{i}]": part for i, part in enumerate(value)} if isinstance(value, tuple | list) else {result: value}
    )
    return inputs, [text for text, part in parts.items() if getattr(part, "requires_grad", False)]


def weighted(w: Writer, text: str) -> str:
    """A real number that depends on every element differently."""
    value = eval(text, w.names)
    scale = f"torch.arange(1., {value.numel() + 1}.).reshape({tuple(value.shape)})"
    product = f"({text} * {scale}).sum()"
    return f"({product}.real + 2 * {product}.imag)" if value.is_complex() else product


def first_order(w: Writer, chosen: Sample, create: bool = False) -> str | None:
    """Gradients of all inputs."""
    inputs, outputs = differentiable(w, chosen)
    if not inputs or not outputs:
        return None
    total = " + ".join(weighted(w, text) for text in outputs)
    extra = ", create_graph=True" if create else ", retain_graph=True"
    return w.let(f"torch.autograd.grad({total}, [{', '.join(inputs)}], allow_unused=True{extra})", "g")


def second_order(w: Writer, chosen: Sample) -> None:
    """Gradients of gradients."""
    got = first_order(w, chosen, create=True)
    if got is None:
        return
    inputs, _ = differentiable(w, chosen)
    terms = [weighted(w, f"{got}[{i}]") for i, g in enumerate(w.names[got]) if g is not None and g.requires_grad]
    if terms:
        w.let(f"torch.autograd.grad({' + '.join(terms)}, [{', '.join(inputs)}], allow_unused=True)", "g")


def forward_mode(w: Writer, chosen: Sample) -> None:
    """Tangents of the outputs."""
    inputs, _ = differentiable(w, chosen)
    if not inputs:
        return
    ad = "torch.autograd.forward_ad"
    names = {
        name: f"{ad}.make_dual({name}.detach(), torch.full_like({name}.detach(), {w.one('1', '0.5', '-2')}))"
        for name in inputs
    }
    arguments = [names.get(text, text) for text in chosen.arguments]
    result, name = spelled(chosen.name, arguments, chosen.keywords), w.fresh("t")
    with w.block(f"{ad}.dual_level()"):
        w.do(f"_d = {result}")
        w.do(f"{name} = [tuple({ad}.unpack_dual(p)) for p in (_d if isinstance(_d, (tuple, list)) else (_d,))]")


def tables() -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Names of operators of one tensor, of two, and of those that reduce."""
    return UNARY, BINARY, REDUCTIONS


def names(text: str) -> tuple[str, ...]:
    """Full names, from short ones."""
    return tuple(f"torch.{name}" for name in text.split())


UNARY = names(
    "abs acos acosh angle asin asinh atan atanh bitwise_not ceil clone conj conj_physical cos cosh deg2rad digamma erf erfc "
    "erfinv exp exp2 expm1 fix flatten floor frac isfinite isinf isnan isreal isposinf isneginf lgamma log log10 log1p log2 "
    "logical_not logit nan_to_num neg positive rad2deg ravel reciprocal relu round rsqrt selu sigmoid sgn sign signbit sin "
    "sinc sinh sqrt square t tan tanh trunc tril triu diag flip view_as_real celu i0 special.i1 special.i0e special.i1e "
    "special.entr special.ndtr special.ndtri special.log_ndtr special.erfcx special.psi special.zeta frexp "
    "nn.functional.gelu nn.functional.silu nn.functional.mish nn.functional.softplus nn.functional.softsign "
    "nn.functional.hardswish nn.functional.hardsigmoid nn.functional.hardtanh nn.functional.elu nn.functional.relu6 "
    "nn.functional.leaky_relu nn.functional.logsigmoid nn.functional.tanhshrink nn.functional.softshrink "
    "nn.functional.hardshrink nonzero unique diff count_nonzero numel trace diagonal argwhere fliplr"
)
BINARY = names(
    "add sub mul div true_divide floor_divide remainder fmod pow atan2 maximum minimum fmax fmin eq ne lt le gt ge copysign "
    "hypot nextafter logaddexp logaddexp2 bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift "
    "logical_and logical_or logical_xor gcd lcm heaviside ldexp xlogy special.xlog1py rsub float_power matmul dot mv mm outer "
    "inner vdot kron cross dist isclose allclose equal nn.functional.mse_loss nn.functional.l1_loss "
    "nn.functional.smooth_l1_loss nn.functional.huber_loss nn.functional.cosine_similarity nn.functional.kl_div "
    "result_type can_cast broadcast_tensors bmm tensordot complex polar clamp clamp_min clamp_max cdist where "
    "special.zeta masked_select take gather index_select searchsorted bucketize"
)
REDUCTIONS = names(
    "sum mean prod amax amin max min argmax argmin all any std var std_mean var_mean logsumexp norm cumsum cumprod cummax "
    "cummin logcumsumexp median nanmedian nansum nanmean mode sort argsort softmax log_softmax nn.functional.softmin aminmax "
    "quantile nanquantile topk kthvalue linalg.vector_norm linalg.norm unique_consecutive histc bincount renorm trapezoid "
    "nn.functional.normalize nn.functional.layer_norm count_nonzero flip roll unbind squeeze cumulative_trapezoid"
)
# What may write over its own input.
ELEMENT_BY_ELEMENT = frozenset(UNARY + BINARY) - frozenset(
    names(
        "matmul dot mv mm outer inner vdot kron cross bmm tensordot masked_select take gather index_select searchsorted bucketize "
        "trace diagonal diag diff unique nonzero argwhere fliplr flip tril triu square cdist dist"
    )
)
# What dtypes and sizes an operator refuses is held against PyTorch by its own tests: here rushlight may take more.
FACTS = ("grad_fn", "version", "output_nr", "storage", "offset", "leniency")
KIND = Kind("operators", draw, with_torch, FACTS)
