"""What gradcheck does: Jacobians by finite differences, by backward and by forward mode, and their comparison.

A Jacobian has a row for each element of an input and a column for each of an output. Of a complex input, a row holds the
derivative along the real axis plus i times that along the imaginary axis, as gradients do; a complex output is two real
ones, its real and its imaginary part.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from rushlight.autograd import forward_ad
from rushlight.autograd.gradcheck_options import GradcheckError, Options
from rushlight.autograd.run import grad
from rushlight.autograd.sparse_checks import is_sparse
from rushlight.basics import dtypes
from rushlight.basics.arrays import Array
from rushlight.basics.caller import warn
from rushlight.basics.dtypes import is_complex
from rushlight.basics.size import Size
from rushlight.signs import to_hold
from rushlight.tensor import Tensor, wrap

PARTS: dict[str, Any] = {"": np.real, "real": np.real, "imaginary": np.imag}


def as_tuple(x: object) -> tuple[Any, ...]:
    """One thing or several as a tuple."""
    return tuple(x) if isinstance(x, (tuple, list)) else (x,)


def parts_of(array: Array) -> tuple[str, ...]:
    """The real outputs that an output consists of."""
    return ("imaginary", "real") if is_complex(array.dtype) else ("",)


def directions(array: Array) -> tuple[complex, ...]:
    """The axes along which an element of an input can be moved."""
    return (1.0, 1j) if is_complex(array.dtype) else (1.0,)


def positions(array: Array) -> Iterator[tuple[int, ...]]:
    """The indices of all elements, in C order."""
    return itertools.product(*map(range, array.shape))


class Check:
    """One run of gradcheck.  blaming: whether messages say which operator is at fault; a run that looks for it says nothing."""

    def __init__(self, func: Callable[..., Any], inputs: tuple[Any, ...], options: Options, blaming: bool = True):
        self.func, self.inputs, self.options, self.blaming = func, inputs, options, blaming
        self.random = np.random.default_rng(20)
        self.checked = [i for i, x in enumerate(inputs) if isinstance(x, Tensor) and x.requires_grad]
        check_inputs(inputs, self.checked, blaming)

    def run(self) -> None:
        """Run all the checks asked for.  Raises GradcheckError."""
        self.outputs = self.smooth(self.called())
        if not self.outputs:
            self.without_outputs()
            return
        if self.options.check_backward_ad:
            self.backward_checks()
        if self.options.check_forward_ad:
            self.forward_checks()

    # Running the function --------------------------------------------------------------------------------------------

    def called(self, inputs: list[Tensor] | None = None) -> tuple[Any, ...]:
        """The outputs.  Raises for those that are no tensors, or sparse ones."""
        found = as_tuple(self.func(*(self.inputs if inputs is None else inputs)))
        for x in found:
            check_output(x)
        return found

    def smooth(self, outputs: tuple[Any, ...]) -> list[Any]:
        """(number, tensor) of the outputs that require grad."""
        return [(k, out) for k, out in enumerate(outputs) if out.requires_grad]

    def values(self) -> list[Any]:
        """Copies of the values of the outputs that are checked."""
        found = self.called()
        return [found[k]._array.copy() for k in self.numbers]

    @property
    def numbers(self) -> list[int]:
        return [k for k, _ in self.outputs]

    def difference(self, i: int, moves: Any) -> list[Any]:
        """The derivatives of all outputs along a direction of input `i`.  moves: pairs (index, step)."""
        x, ends = self.inputs[i], []
        array = x._held
        for sign in (1, -1):
            former = [array[index] for index, _ in moves]
            try:
                for index, step in moves:
                    move = sign * self.options.eps * step
                    array[index] += to_hold(x, np.asarray(move)) if x._bits else move
                ends.append(self.values())
            finally:
                for (index, _), value in zip(moves, former, strict=True):
                    array[index] = value
        check_alike(ends, moves, self.options.eps)
        return [(up - down) / (2 * self.options.eps) for up, down in zip(*ends, strict=True)]

    def vjp(self, outputs: list[Any], vectors: list[Any], create: bool = False) -> list[Any]:
        """Gradients of the checked inputs as tensors or None.  Raises GradcheckError for sparse ones of dense inputs."""
        targets = [self.inputs[i] for i in self.checked]
        given = [v if isinstance(v, Tensor) else wrap(v) for v in vectors]
        found = list(grad(outputs, targets, given, retain_graph=True, create_graph=create, allow_unused=True))
        for i, x, g in zip(self.checked, targets, found, strict=True):
            if g is not None and g.layout is not x.layout:
                raise GradcheckError(f"grad is incorrect layout ({g.layout} is not {x.layout}): that of input {i}")
        return found

    def jvp(self, i: int, tangent: Array) -> list[Any]:
        """The tangents of the checked outputs as arrays, for one of input `i`; those of the other inputs are zero."""
        return self.pushed({**{j: np.zeros_like(self.inputs[j]._array) for j in self.checked}, i: tangent})

    def pushed(self, tangents: dict[int, Any]) -> list[Any]:
        """The tangents of the checked outputs as arrays, for those of inputs by their numbers, None for none.

        The inputs are outside of all graphs: what forward mode finds may not rest on backward.
        """
        with forward_ad.dual_level():
            inputs = list(self.inputs)
            for i, t in tangents.items():
                inputs[i] = inputs[i].detach() if t is None else forward_ad.make_dual(inputs[i].detach(), wrap(t))
            found = self.called(inputs)
            pairs = [forward_ad.unpack_dual(found[k]) for k in self.numbers]
            return [np.zeros_like(p._array) if t is None else t._array for p, t in pairs]

    # Jacobians -------------------------------------------------------------------------------------------------------

    def columns(self, along: Callable[..., Any], i: int) -> list[Any]:
        """Jacobians of all outputs by input `i`, from derivatives along one direction after another: {part: array}."""
        array = self.inputs[i]._array
        made = [{part: np.zeros((array.size, out._array.size), np.result_type(array.dtype, real_of(out._array.dtype)))
                 for part in parts_of(out._array)} for _, out in self.outputs]  # fmt: skip
        for row, index in enumerate(positions(array)):
            for step in directions(array):
                for jacobians, d in zip(made, along(i, index, step), strict=True):
                    for part, jacobian in jacobians.items():
                        jacobian[row] += step * PARTS[part](d).reshape(-1)
        return made

    def numerical(self, i: int) -> list[Any]:
        """By finite differences."""
        return self.columns(lambda i, index, step: self.difference(i, [(index, step)]), i)

    def forward(self, i: int) -> list[Any]:
        """By forward mode."""

        def along(i: int, index: tuple[int, ...], step: complex) -> list[Any]:
            tangent = np.zeros_like(self.inputs[i]._array)
            tangent[index] = step
            return self.jvp(i, tangent)

        return self.columns(along, i)

    def backward(self, n: int) -> list[Any]:
        """By backward: those of the n-th checked output by all inputs, {part: array}."""
        out = self.outputs[n][1]
        arrays = [self.inputs[i]._array for i in self.checked]
        made = [{part: np.zeros((a.size, out._array.size), np.result_type(a.dtype, real_of(out._array.dtype)))
                 for part in parts_of(out._array)} for a in arrays]  # fmt: skip
        for column, index in enumerate(positions(out._array)):
            for part in parts_of(out._array):
                v = np.zeros_like(out._array)
                v[index] = 1j if part == "imaginary" else 1
                for jacobians, g in zip(made, self.vjp([out], [v]), strict=True):
                    if g is not None:
                        jacobians[part][:, column] = g._array.reshape(-1)
        return made

    # Checks of backward ----------------------------------------------------------------------------------------------

    def backward_checks(self) -> None:
        """Everything about reverse mode."""
        self.alike_in_shape()
        self.repeatable()
        if self.options.fast_mode:
            self.fast_backward()
        else:
            numerical = [self.numerical(i) for i in self.checked]
            for n, (k, _) in enumerate(self.outputs):
                for j, (i, found) in enumerate(zip(self.checked, self.backward(n), strict=True)):
                    self.compare(numerical[j][n], found, k, i, "")
        self.scaled_by_gradient()
        if self.options.check_undefined_grad:
            from rushlight.autograd import undefined_checks

            undefined_checks.backward(self)
        if self.options.check_batched_grad:
            from rushlight.autograd import batched_checks

            batched_checks.backward(self)

    def compare(self, numerical: dict[str, Any], analytical: dict[str, Any], k: int, i: int, mode: str) -> None:
        """Raise GradcheckError where two Jacobians {part: array} differ."""
        for part in numerical:
            n, a = numerical[part], analytical[part]
            if not close(a, n, self.options):
                raise GradcheckError(mismatch(self, k, i, part, mode, n, a, "") + self.blame())

    def blame(self) -> str:
        """Which operator is at fault, as far as can be told."""
        from rushlight.autograd.suspects import suspects

        precise = all(self.inputs[i]._array.dtype in (np.float64, np.complex128) for i in self.checked)
        return suspects(self) if self.blaming and precise else ""

    def random_like(self, array: Any) -> Array:
        """Random numbers between 0 and 1, of both parts where complex."""
        made = self.random.random(array.shape)
        if is_complex(array.dtype):
            made = made + 1j * self.random.random(array.shape)
        return np.asarray(made).astype(array.dtype)

    def direction(self, i: int) -> tuple[Any, list[Any]]:
        """A random direction of an input, and the derivatives of all outputs along it."""
        array = self.inputs[i]._array
        u = self.random_like(array)
        u = (u / (np.linalg.norm(u) or 1)).astype(array.dtype)
        return u, self.difference(i, [(index, u[index]) for index in positions(array)])

    def fast_backward(self) -> None:
        """One number in place of a Jacobian: u^T J v for random u and v."""
        along = [self.direction(i) for i in self.checked]
        for n, (k, out) in enumerate(self.outputs):
            v = self.random_like(out._array)
            grads = self.vjp([out], [v])
            for i, (u, derivatives), g in zip(self.checked, along, grads, strict=True):
                numerical = np.real(np.vdot(v, derivatives[n]))
                analytical = 0.0 if g is None else np.real(np.vdot(g._array, u))
                scale = np.abs(u).sum() * np.abs(v).sum()
                if not close(analytical, numerical, self.options, scale):
                    self.again(n, k, i, "", numerical, analytical, self.backward(n)[self.checked.index(i)])

    def again(self, n: int, k: int, i: int, mode: str, numerical: Any, analytical: Any, found: dict[str, Any]) -> None:
        """Raise GradcheckError for what failed in fast mode, with the Jacobians."""
        full = self.numerical(i)[n]
        part = next((p for p in full if not close(found[p], full[p], self.options)), next(iter(full)))
        slow = slow_mode(full[part], found[part], self.options)
        text = mismatch(self, k, i, part, mode, show(numerical), show(analytical), slow, (full[part], found[part]))
        raise GradcheckError(text + self.blame())

    def without_gradient(self) -> list[tuple[int, Any]]:
        """(number, gradient) of the inputs that have one, where those of all outputs are zero."""
        outs = [out for _, out in self.outputs]
        found = self.vjp(outs, [np.zeros_like(out._array) for out in outs])
        return [(i, g) for i, g in zip(self.checked, found, strict=True) if g is not None]

    def alike_in_shape(self) -> None:
        """Gradients have the sizes, and where asked for the dtypes, of the inputs."""
        for i, g in self.without_gradient():
            x = self.inputs[i]
            if g._array.shape != x._array.shape:
                raise GradcheckError(f"grad is incorrect size: {list(g.shape)} for input {i} of size {list(x.shape)}")
            if self.options.check_grad_dtypes and g.dtype != x.dtype:
                raise GradcheckError(f"Gradient has dtype mismatch: {g.dtype} for input {i} of dtype {x.dtype}")

    def scaled_by_gradient(self) -> None:
        """Gradients are zero where those of the outputs are."""
        for i, g in self.without_gradient():
            if not np.all(g._array == 0):
                raise GradcheckError(f"backward not multiplied by grad_output: the gradient of input {i} is not zero for "
                                     "gradients of the outputs that are")  # fmt: skip

    def repeatable(self) -> None:
        """Two backwards give the same."""
        for k, out in self.outputs:
            v = self.random_like(out._array)
            runs = [self.vjp([out], [v]), self.vjp([out], [v])]
            for i, a, b in zip(self.checked, *runs, strict=True):
                if (
                    a is not None
                    and b is not None
                    and np.abs(a._array - b._array).max(initial=0) > self.options.nondet_tol
                ):
                    raise GradcheckError(
                        "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times "
                        f"gives different values: output {k}, input {i}. The tolerance for nondeterminism was "
                        f"{self.options.nondet_tol}: if the operator is meant to be nondeterministic, pass a larger "
                        "nondet_tol."
                    )

    def without_outputs(self) -> None:
        """Where no output requires grad, the outputs may not depend on the inputs."""
        found = [x for x in self.called() if x._array.dtype.kind not in "biu"]
        self.outputs = list(enumerate(found))
        for i in self.checked:
            if found and any(np.abs(d).max(initial=0) > self.options.atol for d in self.direction(i)[1]):
                raise GradcheckError("Numerical gradient for function expected to be zero: no output requires grad, but they "
                                     f"depend on input {i}. Was it detached on the way?")  # fmt: skip

    # Checks of forward mode ------------------------------------------------------------------------------------------

    def forward_checks(self) -> None:
        """Everything about forward mode."""
        for i in self.checked:
            if self.options.fast_mode:
                self.fast_forward(i)
                continue
            numerical = self.numerical(i)
            for n, found in enumerate(self.forward(i)):
                self.compare(numerical[n], found, self.outputs[n][0], i, " computed with forward mode")
        if self.options.check_undefined_grad:
            from rushlight.autograd import undefined_checks

            undefined_checks.forward(self)
        if self.options.check_batched_forward_grad:
            from rushlight.autograd import batched_checks

            batched_checks.forward(self)

    def fast_forward(self, i: int) -> None:
        """One tangent in place of a Jacobian."""
        u, derivatives = self.direction(i)
        scale = np.abs(u).sum()
        for n, (d, t) in enumerate(zip(derivatives, self.jvp(i, u), strict=True)):
            if not close(t, d, self.options, scale):
                self.again(n, self.outputs[n][0], i, " computed with forward mode", d, t, self.forward(i)[n])


# Comparing and telling ---------------------------------------------------------------------------------------------------


def real_of(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of the parts of a complex number."""
    return np.zeros((), dtype).real.dtype


def close(found: Any, expected: Any, options: Options, scale: Any = 1.0) -> bool:
    """Whether derivatives agree with the differences, all of them."""
    with np.errstate(invalid="ignore"):
        return bool(np.all(np.abs(found - expected) <= options.atol * scale + options.rtol * np.abs(expected)))


def check_alike(ends: list[list[Any]], moves: Any, eps: float) -> None:
    """Raise AssertionError where outputs are of another shape or dtype on the other side of a point."""
    where = f" on index {moves[0][0]}" if len(moves) == 1 else ""
    for up, down in zip(*ends, strict=True):
        for name in ("shape", "dtype"):
            if getattr(up, name) != getattr(down, name):
                kinds = [Size(a.shape) if name == "shape" else dtypes.of(a.dtype) for a in (down, up)]
                raise AssertionError(
                    f"Expected `func` to return outputs with the same {name} when inputs are perturbed{where} by {eps}, "
                    f"but got: {name}s {kinds[0]} and {kinds[1]}."
                )


def show(x: Tensor) -> Any:
    """A number, or an array as a tensor."""
    return wrap(x) if isinstance(x, np.ndarray) and x.ndim else x


def slow_mode(numerical: Array, analytical: Array, options: Options) -> str:
    """What follows on the numbers of fast mode."""
    agree = close(analytical, numerical, options)
    verdict = ("\nThey agree: the check passes in slow mode (fast_mode=False), so the tolerances of fast mode are too tight "
               "here, or a difference of the Jacobians is spread over many elements.\n") if agree else ""  # fmt: skip
    worst = np.abs(numerical - analytical).max(initial=0)
    return (f"\nThe above quantities relating the numerical and analytical jacobians are computed in fast mode, from random "
            f"projections. Below, the Jacobians in slow mode:\n\nNumerical:\n {wrap(numerical)}\nAnalytical:\n"
            f"{wrap(analytical)}\n\nThe max per-element difference (slow mode) is: {worst}.\n{verdict}")  # fmt: skip


def mismatch(check: Check, k: int, i: int, part: str, mode: str, numerical: Any, analytical: Any, more: str,
             full: tuple[Array, ...] | None = None) -> str:  # fmt: skip
    """The message for Jacobians that differ."""
    considering = f"While considering the {part} part of complex outputs only, " if part else ""
    n, a = (numerical, analytical) if full is None else full
    return (f"{considering}Jacobian{mode} mismatch for output {k} with respect to input {i},\nnumerical:{show(numerical)}\n"
            f"analytical:{show(analytical)}\n{more}" + worst_place(check, k, i, n, a))  # fmt: skip


def worst_place(check: Check, k: int, i: int, numerical: Array, analytical: Array) -> str:
    """Where two Jacobians differ most."""
    gap = np.abs(analytical - numerical)
    row, column = np.unravel_index(int(np.argmax(np.where(np.isnan(gap), np.inf, gap))), gap.shape)
    out = dict(check.outputs)[k]
    of_input = list(map(int, np.unravel_index(row, check.inputs[i]._array.shape)))
    of_output = list(map(int, np.unravel_index(column, out._array.shape)))
    return (f"They differ most for element {of_output} of output {k} and element {of_input} of input {i}: numerical "
            f"{numerical[row, column]:.6g}, analytical {analytical[row, column]:.6g}.\n")  # fmt: skip


def check_output(out: Tensor) -> None:
    """Raise for an output that cannot be checked."""
    if not isinstance(out, Tensor):
        raise TypeError(
            f"gradcheck expects a function that returns a tensor or several, but it returned {type(out).__name__}"
        )
    if is_sparse(out):
        raise ValueError("Sparse output is not supported at gradcheck yet. Please call to_dense(masked_grad=...) on the output "
                         "of fn for gradcheck.")  # fmt: skip


def check_inputs(inputs: tuple[Any, ...], checked: list[int], warns: bool) -> None:
    """Raise for inputs that cannot be checked; warn of dtypes that are not precise enough."""
    if not checked:
        raise ValueError("gradcheck expects at least one input tensor to require gradient, but none of them have "
                         "requires_grad=True.")  # fmt: skip
    for i in checked:
        array = inputs[i]._array
        if warns and array.dtype not in (np.float64, np.complex128):
            warn(f"Input #{i} requires gradient and is not a double precision floating point or complex. This check will "
                "likely fail if all the inputs are not of double precision floating point or complex. ", UserWarning)  # fmt: skip
        if array.size and any(s == 0 and n > 1 for n, s in zip(array.shape, array.strides, strict=True)):
            raise RuntimeError(
                f"The {i}th input has a dimension with stride 0. gradcheck only supports inputs that are non-overlapping to "
                "be able to compute the numerical gradients correctly. You should call .contiguous on the input before "
                "passing it to gradcheck."
            )


# Second order ------------------------------------------------------------------------------------------------------------


def second_order(
    func: Callable[..., Any], inputs: object, grad_outputs: Tensor | tuple[Tensor, ...] | None, apart: bool
) -> tuple[Any, tuple[Any, ...]]:
    """The function from inputs and gradients of outputs to gradients of inputs, and its arguments."""
    args = as_tuple(inputs)
    outs = [x for x in as_tuple(func(*args)) if isinstance(x, Tensor) and x.requires_grad]
    if grad_outputs is None:
        vectors = random_gradients(outs, apart)
    else:
        vectors = tuple(v for v in as_tuple(grad_outputs) if v is not None)
    count, differentiated = len(args), [isinstance(x, Tensor) and x.requires_grad for x in args]

    def gradients(*given: Any) -> tuple[Any, ...]:
        points = [x.requires_grad_() if wanted else x for x, wanted in zip(given[:count], differentiated, strict=True)]
        found = [x for x in as_tuple(func(*points)) if isinstance(x, Tensor) and x.requires_grad]
        targets = [x for x in points if isinstance(x, Tensor) and x.requires_grad]
        grads = grad(found, targets, list(given[count:]), create_graph=True, allow_unused=True)
        return tuple(g for g in grads if g is not None)

    gradients.of = lambda: func(*args)  # type: ignore[attr-defined]
    return gradients, (*args, *vectors)


def random_gradients(outs: list[Any], apart: bool) -> tuple[Tensor, ...]:
    """Random gradients of outputs, perhaps with other memory between their elements."""
    random, made = np.random.default_rng(21), []
    for out in outs:
        array = out._array
        v = random.uniform(-1, 1, (*array.shape, 2))
        v = v[..., 0] + 1j * v[..., 1] if is_complex(array.dtype) else v[..., 0]
        v = np.array(v).astype(array.dtype)
        if apart and v.size and v.ndim:
            v = np.stack([v, v], -1)[..., 0]
        t = wrap(v)
        made.append(t.requires_grad_())
    return tuple(made)
