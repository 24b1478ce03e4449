"""Functions that are no operators here, and look at values, where `__torch_dispatch__` of a class is to answer them.

By the names of public functions: called with what they compute for others, and their arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.basics.state import modes, special
from rushlight.dispatch.named import Named
from rushlight.ops.python.classes import leaves
from rushlight.tensor import Tensor

torch, functional = Named(""), Named("nn.functional")


def ours(*args: object) -> bool:
    """Whether a class is to be asked."""
    return bool(special.classes.owns(tuple(leaves(args))))


def passed(name: str) -> Callable[..., Any]:
    """A function that the class is asked for as it is called."""

    def asked(inner: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if not ours(args, kwargs) or kwargs.get("out") is not None:
            return inner(*args, **kwargs)
        return special.classes.called(name, *args, **{k: v for k, v in kwargs.items() if v is not None})

    return asked


def in_place(name: str) -> Callable[..., Any]:
    """A change of shape, of which the class knows what it means for what it holds."""

    def asked(inner: Callable[..., Any], input: Tensor, *args: Any, **kwargs: Any) -> Any:
        if not ours(input):
            return inner(input, *args, **kwargs)
        if modes.grad and input.requires_grad:
            raise RuntimeError(
                f"{name}: a tensor whose class has __torch_dispatch__ and that requires grad is not changed in shape in "
                f"place: use {name[:-1]}()"
            )
        special.classes.called(name, input, *args, **kwargs)
        return input

    return asked


def made(name: str) -> Callable[..., Any]:
    """A tensor made after another: `zeros_like`, `new_zeros` and their like."""

    def asked(inner: Callable[..., Any], input: Tensor, *args: Any, **options: Any) -> Any:
        return special.classes.like(name, input, args, **options) if ours(input) else inner(input, *args, **options)

    return asked


def sized(name: str) -> Callable[..., Any]:
    """As `made`, of a size that may be given as ints one by one."""

    def asked(inner: Callable[..., Any], input: Tensor, *args: Any, **options: Any) -> Any:
        if not ours(input):
            return inner(input, *args, **options)
        size = options.pop("size", None)
        given = args[0] if args and isinstance(args[0], (tuple, list)) else args
        rest = args[1:] if name == "new_full" and size is None else args if name == "new_full" else ()
        return special.classes.like(name, input, (list(given if size is None else size), *rest), **options)

    return asked


def nonzero(inner: Callable[..., Any], input: Tensor, *, as_tuple: bool = False, **options: object) -> Any:
    """Where elements are not 0."""
    if not ours(input) or options:
        return inner(input, as_tuple=as_tuple, **options)
    found = special.classes.called("nonzero", input)
    return found.unbind(1) if as_tuple else found


def one_hot(inner: Callable[..., Any], tensor: Tensor, num_classes: int = -1) -> Any:
    """1 at the class, 0 elsewhere."""
    if not ours(tensor):
        return inner(tensor, num_classes)
    count = num_classes if num_classes >= 0 else int(tensor.max().item()) + 1
    return tensor.unsqueeze(-1).eq(torch.arange(count)).to(torch.ones((), dtype=torch.arange(1).dtype).dtype)


def unique(inner: Callable[..., Any], input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False,
           dim: int | None = None) -> Any:  # fmt: skip
    """The distinct elements."""
    if not ours(input):
        return inner(input, sorted, return_inverse, return_counts, dim)
    if dim is None:
        found = special.classes.called("_unique2", input, sorted, return_inverse, return_counts)
    else:
        found = special.classes.called("unique_dim", input, dim, sorted, return_inverse, return_counts)
    return counted(found, return_inverse, return_counts)


def counted(found: Any, return_inverse: bool, return_counts: bool) -> Any:
    """What is asked for of the distinct elements, their places and how many there are of each."""
    kept = [found[0], *[found[1]] * return_inverse, *[found[2]] * return_counts]
    return kept[0] if len(kept) == 1 else tuple(kept)


def unique_consecutive(inner: Callable[..., Any], input: Tensor, *args: Any, **kwargs: Any) -> Any:
    """The elements without those that are equal to the one before."""
    return of_runs(input, *args, **kwargs) if ours(input) else inner(input, *args, **kwargs)


def of_runs(input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None) -> Any:
    """As `unique_consecutive`, of the class."""
    found = special.classes.called("unique_consecutive", input, return_inverse, return_counts, dim)
    return counted(found, return_inverse, return_counts)


def isin(inner: Callable[..., Any], *both: Any, **options: bool) -> Any:
    """Whether elements are among others."""
    kinds = "_".join("Tensor" if isinstance(x, Tensor) else "Scalar" for x in both)
    return special.classes.called(f"isin.{kinds}", *both, **options) if ours(both) else inner(*both, **options)


def evenly(name: str) -> Callable[..., Any]:
    """Numbers between two, at equal steps: `linspace` and `logspace`."""

    def asked(inner: Callable[..., Any], start: Any, end: Any, *rest: Any, **options: Any) -> Any:
        if not ours(start, end) or options.get("out") is not None:
            return inner(start, end, *rest, **options)
        kinds = "_".join("Tensor" if isinstance(x, Tensor) else "Scalar" for x in (start, end))
        given = {k: v for k, v in options.items() if v is not None and k != "requires_grad"}
        found = special.classes.called(f"{name}.{kinds}", start, end, *rest, **given)
        return found.requires_grad_() if options.get("requires_grad") else found

    return asked


def bernoulli(inner: Callable[..., Any], input: Tensor, p: float | None = None, **options: Any) -> Any:
    """1 with the probability that elements are, or with another."""
    if not ours(input) or options.get("out") is not None:
        return inner(input, p, **options)
    given = {k: v for k, v in options.items() if v is not None}
    rest = () if p is None else (p,)
    return special.classes.called("bernoulli.p" if rest else "bernoulli", input, *rest, **given)


def rrelu(inner: Callable[..., Any], input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False,
          inplace: bool = False, generator: Any = None) -> Any:  # fmt: skip
    """A rectifier with slopes that the class draws."""
    if not ours(input) or not training:
        return inner(input, lower, upper, training, inplace, generator)
    low = torch.empty_like(input.detach()).uniform_(lower, upper, generator=generator)
    slopes = torch.where(input.detach() > 0, 1.0, low)
    return input.mul_(slopes) if inplace else input * slopes


def new_tensor(inner: Callable[..., Any], input: Tensor, data: Any, **options: Any) -> Any:
    """A tensor of the dtype of another, which is not of its class."""
    if not ours(input):
        return inner(input, data, **options)
    return torch.tensor(data, **{**options, "dtype": options.get("dtype") or input.dtype})


def argwhere(inner: Callable[..., Any], input: Tensor) -> Any:
    """Where elements are not 0."""
    return special.classes.called("nonzero", input) if ours(input) else inner(input)


def repeat_interleave(inner: Callable[..., Any], input: Tensor, repeats: Any = None, dim: int | None = None, *,
                      output_size: int | None = None) -> Any:  # fmt: skip
    """Slices as often as a vector says, which the class makes places of."""
    if not ours(input if repeats is None else repeats):
        return inner(input, repeats, dim, output_size=output_size)
    if repeats is None:
        return repeated(input, output_size)
    whole, at = (input.reshape(-1), 0) if dim is None else (input, dim)
    counts = repeats.reshape(1).expand(whole.shape[at]) if repeats.numel() == 1 else repeats  # one stands for all
    return whole.index_select(at, repeated(counts, output_size))


def repeated(counts: Tensor, output_size: int | None) -> Tensor:
    """The places 0, 1, ..., as often as a vector says."""
    return special.classes.called("repeat_interleave.Tensor", counts, output_size=output_size)


def pooled(dims: int) -> Callable[..., Any]:
    """The largest of each window, and where it lies as the class says; in one dimension, of images of one row."""

    def asked(inner: Callable[..., Any], input: Tensor, *args: Any, **kwargs: Any) -> Any:
        run = of_row if dims == 1 else of_windows
        return run(inner, input, *args, **kwargs) if ours(input) else inner(input, *args, **kwargs)

    return asked


def of_row(inner: object, input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
           ceil_mode: bool = False, return_indices: bool = False) -> Any:  # fmt: skip
    """`max_pool1d`, by `max_pool2d`."""
    given = (kernel_size, kernel_size if stride is None else stride, padding, dilation)
    wide = [(one, *listed(x, 1)) for one, x in zip((1, 1, 0, 1), given, strict=True)]
    found = functional.max_pool2d(input.unsqueeze(-2), *wide, ceil_mode, return_indices)
    return tuple(x.squeeze(-2) for x in found) if return_indices else found.squeeze(-2)


def of_windows(inner: Callable[..., Any], input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0,
               dilation: Any = 1, ceil_mode: bool = False, return_indices: bool = False) -> Any:  # fmt: skip
    """`max_pool2d` and `max_pool3d`."""
    found, dims = inner(input, kernel_size, stride, padding, dilation, ceil_mode), int(inner.__name__[-2])
    if not return_indices:
        return found
    options = [listed(x, dims) for x in (kernel_size, kernel_size if stride is None else stride, padding, dilation)]
    return found, special.classes.called(f"max_pool{dims}d_with_indices", input, *options, ceil_mode)[1]


def listed(x: Any, dims: int) -> list[Any]:
    """A number for each dimension."""
    return list(x) if isinstance(x, (tuple, list)) else [x] * dims


def masked_scatter_(inner: Callable[..., Any], input: Tensor, mask: Tensor, source: Tensor) -> Any:
    """Elements of a source written where a mask is."""
    if not ours(input, mask, source):
        return inner(input, mask, source)
    if modes.grad and (input.requires_grad or source.requires_grad):
        return input.copy_(torch.masked_scatter(input, mask, source))
    special.classes.called("masked_scatter_", input, mask, source)
    return input


def unsupported(name: str, input: Tensor) -> RuntimeError:
    """The error for what would show values past the class."""
    return RuntimeError(
        f".{name}() is not supported for tensors whose class has __torch_dispatch__, such as {type(input).__name__}: "
        "what it holds is the class's own; take that out by its own attributes or methods"
    )


def no_numpy(inner: Callable[..., Any], input: Tensor, *args: object, **kwargs: object) -> Any:
    """Refused: RuntimeError."""
    if ours(input):
        raise unsupported("numpy", input)
    return inner(input, *args, **kwargs)


def no_list(inner: Callable[..., Any], input: Tensor) -> Any:
    """Refused: RuntimeError."""
    if ours(input):
        raise unsupported("tolist", input)
    return inner(input)


def contains(inner: Callable[..., Any], input: Tensor, element: object) -> Any:
    """Whether any element is this one."""
    return bool((input == element).any()) if ours(input) else inner(input, element)


def address(inner: Callable[..., Any], input: Tensor) -> Any:
    """0 where there is no memory."""
    return 0 if getattr(input._held, "nowhere", False) else inner(input)


METHODS: dict[str, Callable[..., Any]] = {
    "nonzero": nonzero, "unique": unique, "equal": passed("equal"),
    "allclose": passed("allclose"), "multinomial": passed("multinomial"), "histc": passed("histc"),
    "bincount": passed("bincount"), "masked_scatter_": masked_scatter_, "unique_consecutive": unique_consecutive,
    "isin": isin, "argwhere": argwhere, "repeat_interleave": repeat_interleave,
    "nonzero_static": passed("nonzero_static"), "bernoulli": bernoulli,
    "histogram": passed("histogram.bin_ct"),
}  # fmt: skip
ASKED: dict[str, Callable[..., Any]] = {
    **{f"torch.{name}": asked for name, asked in METHODS.items()},
    **{f"torch.Tensor.{name}": asked for name, asked in METHODS.items()},
    **{
        f"torch.Tensor.{name}": in_place(name)
        for name in ("t_", "transpose_", "unsqueeze_", "squeeze_", "resize_", "as_strided_")
    },
    **{f"torch.{name}_like": made(f"{name}_like") for name in ("rand", "randn", "randint")},
    **{f"torch.Tensor.new_{name}": sized(f"new_{name}") for name in ("empty", "zeros", "ones", "full")},
    "torch.Tensor.new_empty_strided": made("new_empty_strided"),
    "torch.bucketize": passed("bucketize.Tensor"),
    "torch.searchsorted": passed("searchsorted.Tensor"),
    **{f"torch.nn.functional.max_pool{n}d": pooled(n) for n in (1, 2, 3)},
    "torch.linspace": evenly("linspace"),
    "torch.logspace": evenly("logspace"),
    "torch.rrelu": rrelu,
    "torch.nn.functional.rrelu": rrelu,
    "torch.Tensor.new_tensor": new_tensor,
    "torch.nn.functional.one_hot": one_hot,
    "torch.Tensor.numpy": no_numpy,
    "torch.Tensor.__array__": no_numpy,
    "torch.Tensor.tolist": no_list,
    "torch.Tensor.__contains__": contains,
    "torch.Tensor.data_ptr": address,
}
