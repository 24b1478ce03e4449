"""complex32 gives what PyTorch gives, and what PyTorch refuses for 'ComplexHalf' is refused or right."""

import warnings

import pytest

import rushlight

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")]

EXPRESSIONS = """
a + b; a - b; a * b; a + 1; 1 - a; a * 2j; a + h; h * a; a + f; h * 1j; h - z; f * z; -a; +a; a.abs(); a.sgn(); a == b
a != b; a == f; a.isfinite(); a.isinf(); a.isnan(); a.isreal(); torch.isclose(a, b); torch.add(a, b, alpha=2)
a.half(); a.float(); a.bfloat16(); a.double(); a.cfloat(); a.cdouble(); a.long(); a.bool(); h.chalf(); f.chalf(); i.chalf()
a.real; a.imag; torch.view_as_real(a); torch.complex(h, h); a.conj(); a.conj().imag; m.mH; torch.conj_physical(a)
torch.cat([a, b]); torch.cat([a, f]); torch.cat([a, h]); torch.stack([a, b]); torch.block_diag(m, m); m.roll(1); m.tril()
torch.where(a == b, a, b); torch.where(a == b, a, 1.0); torch.where(a == b, a, f); m.nonzero(); torch.count_nonzero(a)
a.any(); a.all(); m.diag(); torch.diag_embed(a); a.repeat(2); a.expand(2, 3); a.repeat_interleave(2); a.unfold(0, 2, 1)
a.view(torch.half); a.view(torch.int32); m.T; m.flatten(); m[:, 1]; a[i]; a[a == b]; a.index_select(0, i)
a.masked_select(a == b); a.masked_fill(a == b, 1j); a.index_fill(0, i, 1j); a.index_copy(0, i, b[:2])
a.index_add(0, i, b[:2]); a.index_put((i,), b[:2]); a.index_put((i,), b[:2], accumulate=True); torch.flip(m, [0])
a.clone().fill_(1j); a.clone().zero_(); a.clone().add_(b, alpha=2); a.clone().mul_(f); f.clone().copy_(a)
torch.zeros(2, dtype=torch.chalf); torch.ones(2, dtype=torch.chalf); torch.full((2,), 1j, dtype=torch.chalf)
torch.ones_like(a); a.new_full((2,), 1j); torch.tensor(a.tolist(), dtype=torch.chalf); torch.nn.functional.pad(a, (1, 1))
a.norm(); torch.norm(a, float("inf")); torch.norm(a, 1); torch.kron(a, b); torch.outer(a, b); torch.addcmul(a, a, b)
torch.rsub(a, b); torch.fft.fftshift(a); torch.atleast_2d(a); torch.movedim(m, 0, 1)
"""
REFUSED = """
a / b; a @ b; a.angle(); a.sum(); a.mean(); a.prod(); a.exp(); a.sqrt(); a.pow(2); a.sin(); a.tanh(); a.log(); a.cumsum(0)
m @ m; a.dot(b); m.trace(); a.gather(0, i); a.take(i); a.scatter(0, i, b); torch.einsum("i,i", a, b); torch.lerp(a, b, 0.5)
torch.softmax(a, 0); a.reciprocal(); a.square(); torch.logical_not(a)
"""


def split(text):
    return [part.strip() for line in text.strip().splitlines() for part in line.split(";")]


def evaluated(expression, library):
    def made(values, dtype):
        return library.tensor(values, dtype=getattr(library, dtype))

    names = {
        "torch": library, "a": made([1 + 2j, 3 - 4j, 0], "complex32"), "b": made([2 - 1j, 3 - 4j, 1j], "complex32"),
        "h": made([1, 2, 3], "float16"), "f": made([1, 2, 3], "float32"), "i": made([0, 2], "int64"),
        "m": made([[1 + 2j, 3 - 4j], [0, 1j]], "complex32"), "z": made(1 + 2j, "complex32"),
    }  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = eval(expression, names)
    return str(result.dtype), tuple(result.shape), result.tolist()


@pytest.mark.parametrize("expression", split(EXPRESSIONS))
def test_values_and_dtypes_are_those_of_pytorch(expression):
    assert evaluated(expression, rushlight) == evaluated(expression, torch)


@pytest.mark.parametrize("expression", split(REFUSED))
def test_what_pytorch_refuses_is_refused_with_its_words(expression):
    for library in (torch, rushlight):
        with pytest.raises(NotImplementedError, match="not implemented for 'ComplexHalf'"):
            evaluated(expression, library)


@pytest.mark.parametrize("name", ["conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d"])
def test_convolutions_and_their_gradients(name):
    found = []
    for library in (rushlight, torch):
        library.manual_seed(0)
        n = int(name[-2])
        shapes = (2, 2, *(4,) * n), (2, 2, *(2,) * n), (2,)
        parts = [library.view_as_complex(library.randn(*shape, 2, dtype=library.float64)) for shape in shapes]
        x, w, b = (part.to(library.complex64).chalf().requires_grad_() for part in parts)
        y = getattr(library.nn.functional, name)(x, w, b)
        y.backward(library.ones_like(y))
        found.append([t.detach().cfloat().numpy() for t in (y, x.grad, w.grad, b.grad)])
    for mine, theirs in zip(*found, strict=True):
        assert mine.shape == theirs.shape and abs(mine - theirs).max() < 0.03
