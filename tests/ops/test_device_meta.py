"""Tensors on the device meta: shapes, strides and dtypes without memory."""

import copy
import gc

import numpy as np
import pytest

import rushlight as torch
from rushlight.basics.state import special
from rushlight.serialization import safetensors

F = torch.nn.functional


def meta(*size, **options):
    return torch.empty(*size, device="meta", **options)


def test_a_tensor_without_memory_knows_its_shape() -> None:
    x = meta(3, 4, dtype=torch.float64)
    assert (
        x.device == torch.device("meta") and x.is_meta and not x.is_cpu and x.shape == (3, 4) and x.stride() == (4, 1)
    )
    assert x.dtype is torch.float64 and x.nbytes == 96 and x.data_ptr() == 0 and isinstance(x, torch.Tensor)
    assert repr(x) == "tensor(..., device='meta', size=(3, 4), dtype=torch.float64)"
    assert x.t().stride() == (1, 4) and x[1:, None].shape == (2, 1, 4) and x.view(-1).shape == (12,)
    assert x.t().reshape(-1).shape == (12,) and x.expand(2, 3, 4).stride() == (0, 4, 1)


def test_no_memory_is_taken() -> None:
    before = torch.memory.current()
    x = meta(10**6, 10**6)
    y = (x @ x).softmax(-1) + x[0]
    assert y.shape == (10**6, 10**6) and y.nbytes == 4 * 10**12
    assert torch.memory.current() - before < 10_000


HERE = torch.ones(2, 3)
FACTORIES = {
    "zeros": lambda **k: torch.zeros(2, 3, **k), "ones": lambda **k: torch.ones(2, 3, **k),
    "full": lambda **k: torch.full((2, 3), 1.5, **k), "rand": lambda **k: torch.rand(2, 3, **k),
    "randn": lambda **k: torch.randn(2, 3, **k), "randint": lambda **k: torch.randint(5, (2, 3), **k),
    "randperm": lambda **k: torch.randperm(4, **k), "eye": lambda **k: torch.eye(3, **k),
    "arange": lambda **k: torch.arange(4, **k), "linspace": lambda **k: torch.linspace(0, 1, 4, **k),
    "logspace": lambda **k: torch.logspace(0, 1, 4, **k), "tril_indices": lambda **k: torch.tril_indices(3, 3, **k),
    "tensor": lambda **k: torch.tensor([[1, 2]], **k), "as_tensor": lambda **k: torch.as_tensor(np.ones(3), **k),
    "scalar_tensor": lambda **k: torch.scalar_tensor(2, **k), "normal": lambda **k: torch.normal(0.0, 1.0, (2,), **k),
    "empty_strided": lambda **k: torch.empty_strided((2, 3), (1, 2), **k),
    "empty_permuted": lambda **k: torch.empty_permuted((2, 3), (1, 0), **k),
    "zeros_like": lambda **k: torch.zeros_like(HERE, **k), "ones_like": lambda **k: torch.ones_like(HERE, **k),
    "full_like": lambda **k: torch.full_like(HERE, 3.0, **k), "rand_like": lambda **k: torch.rand_like(HERE, **k),
    "new_zeros": lambda **k: HERE.new_zeros(2, 3, **k), "new_full": lambda **k: HERE.new_full((2,), 3.0, **k),
    "new_tensor": lambda **k: HERE.new_tensor([1, 2], **k),
}  # fmt: skip


@pytest.mark.parametrize("name", FACTORIES)
def test_factories_make_such_tensors(name: str) -> None:
    here, there = FACTORIES[name](), FACTORIES[name](device="meta")
    assert there.is_meta and (there.shape, there.dtype, there.stride()) == (here.shape, here.dtype, here.stride())
    with torch.device("meta"):
        inside = FACTORIES[name]()
    assert inside.is_meta is not (name.endswith("_like") or name.startswith("new_"))
    assert not FACTORIES[name]().is_meta


def test_what_is_made_after_one_is_there_too_unless_asked() -> None:
    x = meta(2, 3)
    for made in (
        torch.zeros_like(x),
        x.new_ones(4),
        torch.randn_like(x),
        x.clone(),
        x.double(),
        x.detach(),
        copy.deepcopy(x),
    ):
        assert made.is_meta
    assert torch.zeros_like(x, device="cpu").tolist() == [[0.0] * 3] * 2
    assert (
        torch.ones(2).to("meta").is_meta
        and torch.ones(2).to(x).is_meta
        and torch.ones(2).to(x.device, torch.int64).dtype is torch.int64
    )


def same_shape(function, *inputs) -> None:
    """A function gives the same shapes, dtypes and requires_grad there as here."""
    with torch.no_grad():
        there = [x.to("meta") for x in inputs]
    here, found = function(*inputs), function(*there)
    for a, b in zip(*(x if isinstance(x, (tuple, list)) else (x,) for x in (here, found)), strict=True):
        assert b.is_meta and (a.shape, a.dtype) == (b.shape, b.dtype), function


def test_operators_compute_shapes() -> None:
    x, y = torch.randn(3, 4), torch.randn(4, 5)
    for function in (torch.exp, torch.sum, lambda x: x.mean(0), lambda x: x.var(1), lambda x: x.argmax(1), lambda x: x > 0,
                     lambda x: x.softmax(-1), lambda x: x.cumsum(0), lambda x: x.sort(1), lambda x: x.topk(2),
                     lambda x: torch.cat([x, x]), lambda x: torch.stack([x, x], 1), lambda x: x.split(2, 1), lambda x: x.max(1),
                     lambda x: torch.where(x > 0, x, 2 * x), lambda x: F.pad(x, (1, 2)), lambda x: x.tril(), lambda x: x.half() * 2,
                     lambda x: x.repeat(2, 1), lambda x: x.masked_fill(x > 0, 1.0), lambda x: x.logsumexp(0),
                     lambda x: F.layer_norm(x, (4,)), lambda x: F.gelu(x), lambda x: x / 3 + 2**x, lambda x: x.flatten()):  # fmt: skip
        same_shape(function, x)
    for function in (lambda x: x[:, x[:, :2].argmax(0)], lambda x: x[x.argmax(0), x.argmax(0)], lambda x: x[None][:, :, x.argmax(1)[None]],
                     lambda x: x[None].repeat(4, 1, 1)[x.argmax(1), :, x.argmax(1)]):  # fmt: skip
        same_shape(function, torch.zeros(3, 4))
    same_shape(torch.matmul, x, y)
    same_shape(lambda x, y: torch.einsum("ij,jk->ki", x, y), x, y)
    same_shape(F.cross_entropy, x, torch.zeros(3, dtype=torch.int64))
    same_shape(lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True), torch.randn(2, 3, 5, 4))
    same_shape(lambda x: F.max_pool2d(F.interpolate(x, scale_factor=2), 3), torch.randn(1, 2, 6, 6))
    same_shape(lambda t: F.embedding(torch.zeros(2, 3, dtype=torch.int64, device=t.device), t), torch.randn(5, 4))


def test_modules_run_by_shapes() -> None:
    with torch.device("meta"):
        net = torch.nn.Sequential(
            torch.nn.Conv2d(3, 4, 3),
            torch.nn.BatchNorm2d(4),
            torch.nn.ReLU(),
            torch.nn.Flatten(),
            torch.nn.Linear(144, 5),
        )
        layer = torch.nn.TransformerEncoderLayer(8, 2, batch_first=True)
    out = net(meta(2, 3, 8, 8))
    assert out.shape == (2, 5) and out.requires_grad and out.grad_fn is not None
    assert layer(meta(2, 5, 8)).shape == (2, 5, 8)
    with torch.no_grad():
        assert not net(meta(2, 3, 8, 8)).requires_grad


def test_a_model_comes_to_have_memory() -> None:
    with torch.device("meta"):
        net = torch.nn.Linear(2, 3)
    assert all(isinstance(p, torch.nn.Parameter) and p.requires_grad and p.is_meta for p in net.parameters())
    clone = copy.deepcopy(net)
    assert isinstance(clone.weight, torch.nn.Parameter) and clone.weight.is_meta and clone.weight.requires_grad
    assert "Parameter containing" in repr(net.weight)
    values = {"weight": torch.ones(3, 2), "bias": torch.zeros(3)}
    net.load_state_dict(values, assign=True)
    assert net(torch.ones(1, 2)).tolist() == [[2.0, 2.0, 2.0]] and net.weight.requires_grad
    with pytest.warns(UserWarning, match="which is a no-op"):
        clone.load_state_dict(values)  # copied to where nothing is
    assert clone.weight.is_meta
    clone.to_empty(device="cpu").load_state_dict(values)
    clone(torch.ones(1, 2)).sum().backward()
    assert clone.weight.grad.tolist() == [[1.0, 1.0]] * 3
    assert torch.nn.Linear(2, 3).to("meta").weight.is_meta
    weight = torch.nn.Linear(2, 3, device="meta").weight
    made = type(weight)(torch.ones(2), requires_grad=False)
    assert type(made) is torch.nn.Parameter and made.tolist() == [1.0, 1.0]
    assert type(weight)(torch.ones(2, device="meta")).is_meta


def test_what_asks_for_values_is_refused_by_name() -> None:
    x = meta(3, 4, requires_grad=True)
    for ask, name in ((bool, "__bool__"), (lambda x: x.tolist(), "tolist"),
                      (torch.nonzero, "argwhere"), (lambda x: x[x > 0], "index"),
                      (lambda x: x.untyped_storage(), "untyped_storage"),
                      (lambda x: torch.eye(4).to_sparse() @ x.t(), "product"),
                      (lambda x: torch.utils.data.WeightedRandomSampler(x[0], 1), "weights"),
                      (lambda x: safetensors.save_file({"x": x}, "nowhere"), "safetensors"), (lambda x: torch.histogram(x.detach(), 3), "edges_of")):  # fmt: skip
        with pytest.raises(NotImplementedError, match=f"{name}.*device 'meta' has a shape and no values"):
            ask(x)
    for ask, name in ((lambda x: x.numpy(), "numpy"), (np.asarray, "__array__")):
        with pytest.raises(TypeError, match=f"{name}.*device 'meta' has a shape and no values"):
            ask(x)
    with pytest.raises(RuntimeError, match="item"):
        x.sum().item()
    for move in (
        lambda: x.cpu(),
        lambda: x.to("cpu"),
        lambda: x.to(torch.ones(1)),
        lambda: torch.nn.Linear(1, 1, device="meta").to("cpu"),
    ):
        with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor; no data!"):
            move()


def test_devices_do_not_mix() -> None:
    x, here = meta(3), torch.ones(3)
    assert (x * torch.tensor(2.0)).is_meta and (2 * x).is_meta
    for mix in (lambda: x + here, lambda: torch.nn.Linear(3, 2, device="meta")(here), lambda: torch.cat([x, here])):
        with pytest.raises(RuntimeError, match="same device"):
            mix()
    with pytest.raises((RuntimeError, NotImplementedError)):
        here.add_(x)
    with pytest.raises(RuntimeError, match="incompatible tensor type"):
        here.data = x
    with pytest.raises(RuntimeError, match="incompatible tensor type"):
        x.data = here
    assert here.tolist() == [1.0, 1.0, 1.0]


def test_in_place_changes_have_nothing_to_change() -> None:
    x = meta(3, 4)
    assert x.add_(1) is x and x.normal_() is x and x.copy_(torch.ones(4)) is x and x.zero_() is x and x._version == 4
    for name in ("kaiming_uniform_", "trunc_normal_", "orthogonal_", "sparse_", "eye_", "dirac_"):
        weight = meta(3, 4, 3) if name == "dirac_" else x
        assert getattr(torch.nn.init, name)(weight, *([0.5] if name == "sparse_" else [])) is weight
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        x.add_(meta(2, 3, 4))
    with pytest.raises(RuntimeError, match="broadcast"):
        x + meta(3)


def test_operators_are_as_before_once_none_is_alive() -> None:
    gc.collect()
    before = special.count
    x = meta(2)
    y = x + 1
    assert special.count == before + 2
    del x, y
    gc.collect()
    assert special.count == before


# Backward, recurrent layers and decompositions ---------------------------------------------------------------------


def small_net() -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU(inplace=True), torch.nn.MaxPool2d(2),
                               torch.nn.Flatten(), torch.nn.Linear(36, 5))  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.complex64, torch.complex128])
def test_arithmetic_of_every_dtype(dtype) -> None:
    x = meta(2, 3, dtype=dtype)
    assert (x / x).dtype is dtype and (x * 2 + x).shape == (2, 3) and x.exp().dtype is dtype


def test_backward_gives_gradients_without_memory() -> None:
    net, before = small_net().to("meta"), torch.memory.current()
    for _ in range(2):  # the second time they are added
        F.cross_entropy(net(meta(2, 3, 8, 8)), meta(2, dtype=torch.int64)).backward()
    for p in net.parameters():
        assert p.grad.is_meta and p.grad.shape == p.shape and p.grad.dtype is p.dtype and not p.grad.requires_grad
    assert torch.memory.current() - before < 20_000


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_recurrent_layers(kind: str) -> None:
    options = {"num_layers": 2, "bidirectional": True, **({"proj_size": 2} if kind == "LSTM" else {})}
    here, net = (getattr(torch.nn, kind)(3, 4, **options, device=device) for device in ("cpu", "meta"))
    expected, expected_last = here(torch.ones(5, 2, 3))
    found, last = net(meta(5, 2, 3))
    assert found.shape == expected.shape and found.is_meta
    pairs = zip(last, expected_last, strict=True) if kind == "LSTM" else ((last, expected_last),)
    assert all(a.shape == b.shape and a.is_meta for a, b in pairs)
    found.sum().backward()
    assert all(p.grad.shape == p.shape for p in net.parameters())


def test_gradients_reach_what_the_graph_reaches() -> None:
    x, w, other = (meta(3, 3, requires_grad=True) for _ in range(3))
    seen = []
    w.register_hook(lambda g: seen.append(("hook", g.shape)))
    w.register_post_accumulate_grad_hook(lambda p: seen.append(("after", p.grad.shape)))
    middle = x @ w
    middle.retain_grad()
    (middle.tanh() + middle.detach() * 2).sum().backward()
    assert x.grad.is_meta and middle.grad.shape == (3, 3) and other.grad is None
    assert seen == [("hook", (3, 3)), ("after", (3, 3))]
    found = torch.autograd.grad((x * w)[0], [x, other], meta(3), allow_unused=True)
    assert found[0].shape == (3, 3) and found[0].is_meta and found[1] is None
    with pytest.raises(RuntimeError, match="not have been used in the graph"):
        torch.autograd.grad(x.sum(), other)
    with pytest.raises(RuntimeError, match="only for scalar outputs"):
        (x * w).backward()
    with pytest.raises(RuntimeError, match="does not require grad"):
        meta(1).backward()
    (first,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    assert first.requires_grad and torch.autograd.grad(first.sum(), x)[0].shape == (3, 3)


def test_changes_in_place_are_in_the_graph() -> None:
    w, x, base = meta(3, requires_grad=True), meta(3), meta(2, 3)
    x.mul_(w)
    base[0].add_(w)
    assert x.requires_grad and base.requires_grad
    x.sum().backward()
    assert w.grad.shape == (3,)
    assert torch.autograd.grad(base.sum(), w)[0].is_meta


A, B, TALL = (
    (torch.eye(3) * 2).expand(2, 3, 3).contiguous(),
    torch.ones(2, 3, 4),
    torch.arange(30.0).view(2, 5, 3).sin(),
)
L = torch.linalg
MATRICES = {
    "inv": lambda a, b, r: L.inv(a), "det": lambda a, b, r: L.det(a), "slogdet": lambda a, b, r: L.slogdet(a),
    "logdet": lambda a, b, r: torch.logdet(a), "solve": lambda a, b, r: L.solve(a, b), "cholesky": lambda a, b, r: L.cholesky(a),
    "cholesky_ex": lambda a, b, r: L.cholesky_ex(a), "qr": lambda a, b, r: L.qr(r), "qr complete": lambda a, b, r: L.qr(r, mode="complete"),
    "svd": lambda a, b, r: L.svd(r), "svd reduced": lambda a, b, r: L.svd(r, full_matrices=False), "svdvals": lambda a, b, r: L.svdvals(r),
    "eigh": lambda a, b, r: L.eigh(a), "eig": lambda a, b, r: L.eig(a), "eigvals": lambda a, b, r: L.eigvals(a), "lu": lambda a, b, r: L.lu(r),
    "lu_factor": lambda a, b, r: L.lu_factor(a), "pinv": lambda a, b, r: L.pinv(r), "matrix_exp": lambda a, b, r: L.matrix_exp(a),
    "solve_triangular": lambda a, b, r: L.solve_triangular(a, b, upper=True), "cond": lambda a, b, r: L.cond(a), "inv_ex": lambda a, b, r: L.inv_ex(a),
    "cholesky_solve": lambda a, b, r: torch.cholesky_solve(b, a), "cholesky_inverse": lambda a, b, r: torch.cholesky_inverse(a),
    "householder_product": lambda a, b, r: L.householder_product(r, r[..., 0, :]), "nuclear": lambda a, b, r: L.matrix_norm(r, "nuc"),
}  # fmt: skip


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.complex128])
def test_decompositions_have_the_shapes_that_they_have_on_the_cpu(name: str, dtype) -> None:
    given = [x.to(dtype) for x in (A, B, TALL)]
    expected = MATRICES[name](*given)
    found = MATRICES[name](*(x.to("meta") for x in given))
    as_list = [list(x) if isinstance(x, tuple) else [x] for x in (expected, found)]
    assert [(x.shape, x.dtype) for x in as_list[1]] == [(x.shape, x.dtype) for x in as_list[0]]
    assert all(x.is_meta for x in as_list[1])


def test_decompositions_have_gradients() -> None:
    x = meta(3, 3, requires_grad=True)
    (L.inv(x) + L.eigh(x @ x.T)[1] + L.svd(x)[0] * L.det(x)).sum().backward()
    assert x.grad.shape == (3, 3)


def test_indices_without_values_are_taken_for_right() -> None:
    x, index = meta(3, 4, requires_grad=True), meta(3, 2, dtype=torch.int64)
    assert x.gather(1, index).shape == (3, 2) and F.embedding(index, x).shape == (3, 2, 4)
    assert torch.zeros_like(x).scatter(1, index, x[:, :2]).shape == (3, 4) and x.take_along_dim(index, 1).shape == (
        3,
        2,
    )
    (x.gather(1, index).sum() + x[index].sum() + x.index_select(0, index[0]).sum()).backward()
    assert x.grad.shape == (3, 4)


def test_empty_tensors_of_old_are_joined() -> None:
    assert torch.cat([meta(0), meta(2, 3)], 1).shape == (2, 3) and torch.cat([meta(0), meta(0)]).shape == (0,)


def test_parts_are_written_to_as_whole_tensors_are():
    x = torch.ones(2, 3, device="meta")
    x[0] = 1
    x[:, 1] = torch.ones(2, device="meta")
    x[torch.ones(2, 3, device="meta", dtype=torch.bool)] = 2.0
    assert x._version == 3
    with pytest.raises(RuntimeError):
        x[0] = torch.ones(5, device="meta")
    with pytest.raises(NotImplementedError, match="recorded"):
        torch.ones(2, device="meta", requires_grad=True).clone()[0] = torch.ones((), device="meta", requires_grad=True)


def test_weights_on_meta_are_initialised_as_models_do():
    with torch.device("meta"):
        embedding, linear = torch.nn.Embedding(10, 4, padding_idx=0), torch.nn.Linear(4, 2)
    torch.nn.init.trunc_normal_(linear.weight, std=0.02)
    embedding.weight.data[embedding.padding_idx].zero_()
    with torch.no_grad():
        embedding.weight[0] = 0
    assert linear.weight.is_meta and embedding.weight.is_meta


@pytest.mark.parametrize(
    ("target", "source"), [((), (1,)), ((2,), (3, 2)), ((2,), (1, 2)), ((3,), (2,)), ((2, 3), (2,))]
)
def test_copies_and_changes_that_do_not_fit_are_refused_as_where_there_is_memory(target, source) -> None:
    for device in ("cpu", "meta"):
        x, y = torch.zeros(target, device=device), torch.zeros(source, device=device)
        for write in (torch.Tensor.copy_, torch.Tensor.add_, lambda x, y: x.copy_(src=y), lambda x, y: x.lerp_(y, 0.5)):
            with pytest.raises(RuntimeError):
                write(x, y)
        assert x._version == 0
    with pytest.raises(RuntimeError):
        torch.zeros(target, device="meta").copy_(torch.zeros(source))
    fits = torch.zeros((2, 3), device="meta")
    assert fits.copy_(torch.zeros(3)) is fits and fits.copy_(torch.zeros((), device="meta")) is fits


@pytest.mark.parametrize(
    "make",
    [lambda out: torch.add(torch.ones(3), 1, out=out), lambda out: torch.mm(torch.eye(3), torch.eye(3), out=out)],
)
def test_out_on_meta_takes_no_values_from_the_cpu(make) -> None:
    with pytest.raises(RuntimeError, match="from device cpu to device meta, but cross-device copies are not allowed"):
        make(torch.empty(0, device="meta"))


def test_out_on_the_cpu_takes_no_shape_from_meta() -> None:
    with pytest.raises(RuntimeError, match="from device meta to device cpu"):
        torch.add(torch.ones(3, device="meta"), 1, out=torch.empty(3))


def test_out_on_meta_takes_shapes() -> None:
    x, out = torch.ones(2, 3, device="meta"), torch.empty(0, device="meta")
    assert torch.add(x, 1, out=out) is out and out.shape == (2, 3)
    assert torch.mm(x, x.t(), out=torch.empty(0, device="meta")).shape == (2, 2)
    assert torch.zeros(4, out=torch.empty(0, device="meta")).is_meta


OF_SHAPES = {
    "a mask of more dimensions": lambda x, mask: x.masked_fill(mask, 1.0), "the same of a tensor": lambda x, mask: x.masked_fill(mask, x[0, 0] * 2),
    "a sum of exponentials of integers": lambda x, mask: torch.logsumexp(x.long(), 0), "channels": lambda x, mask: F.dropout2d(x[None, None]),
    "where windows are largest": lambda x, mask: F.max_pool2d(x[None], 2, return_indices=True)[1], "alpha dropout": lambda x, mask: F.alpha_dropout(x, training=True),
    "a row of windows": lambda x, mask: F.max_pool1d(x, 2, return_indices=True)[1], "windows over the edge": lambda x, mask: F.avg_pool2d(x[None], 2, ceil_mode=True),
    "drawn categories": lambda x, mask: F.gumbel_softmax(x), "a label of size 1": lambda x, mask: torch.einsum("ij,kj->ik", x, x[:1]),
}  # fmt: skip


@pytest.mark.parametrize("run", OF_SHAPES.values(), ids=list(OF_SHAPES))
def test_shapes_and_dtypes_are_those_of_values(run) -> None:
    here, there = (run(torch.ones(3, 5, device=d), torch.ones(2, 3, 5, device=d) > 0) for d in ("cpu", "meta"))
    assert there.is_meta and there.shape == here.shape and there.dtype == here.dtype


BATCH, ROWS, PLACES = (1, 2, 8, 8), (4, 3), (3, 4)
BY_VALUES_ELSEWHERE = {
    "fractional windows": lambda f, i: F.fractional_max_pool2d(f(BATCH), 2, output_size=3, return_indices=True),
    "adaptive windows": lambda f, i: F.adaptive_max_pool2d(f(BATCH), 2, return_indices=True),
    "maxima put back": lambda f, i: F.max_unpool2d(f(BATCH), i(BATCH), 2), "columns": lambda f, i: F.fold(f((1, 8, 9)), (4, 4), 2),
    "a grid reflected": lambda f, i: F.grid_sample(f(BATCH), f((1, 3, 3, 2)), padding_mode="reflection", align_corners=False),
    "a grid at the border": lambda f, i: F.grid_sample(f(BATCH), f((1, 3, 3, 2)), "bicubic", "border", align_corners=True),
    "bags": lambda f, i: F.embedding_bag(i(PLACES), f(ROWS)), "bags with offsets": lambda f, i: F.embedding_bag(i((5,)), f(ROWS), i((2,)), include_last_offset=True),
    "largest of bags": lambda f, i: F.embedding_bag(i(PLACES), f(ROWS), mode="max"), "one hot": lambda f, i: F.one_hot(i(PLACES), 5),
    "running statistics": lambda f, i: F.instance_norm(f(BATCH), f((2,)), f((2,))), "classes": lambda f, i: F.multi_margin_loss(f(ROWS), i((4,))),
    "labels": lambda f, i: F.multilabel_margin_loss(f(ROWS), i(ROWS)), "slopes": lambda f, i: F.rrelu(f(ROWS), training=True),
    "bilinear": lambda f, i: F.bilinear(f((2, 3)), f((2, 4)), f((5, 3, 4))), "cosines": lambda f, i: F.cosine_similarity(f((5, 3)), f((4, 1, 3)), -1),
    "distances": lambda f, i: torch.cdist(f((5, 1, 3, 2)), f((2, 4, 2))), "distances of pairs": lambda f, i: F.pdist(f(ROWS)),
    "a quantile": lambda f, i: torch.quantile(f(ROWS), 0.5), "quantiles": lambda f, i: torch.nanquantile(f(ROWS), f((2,)), 1, True),
    "counts in bins": lambda f, i: torch.histc(f(ROWS), 5), "places": lambda f, i: torch.searchsorted(f((4, 5)), f(ROWS), out_int32=True),
    "buckets": lambda f, i: torch.bucketize(f(ROWS), f((5,))), "members": lambda f, i: torch.isin(i(ROWS), i((2,))),
    "small rows": lambda f, i: torch.renorm(f(ROWS), 2, 0, 1.0), "blocks": lambda f, i: torch.block_diag(f(ROWS), f((2,)), f(ROWS)),
    "draws": lambda f, i: torch.multinomial(f(ROWS), 2), "normal": lambda f, i: torch.normal(f(ROWS), f((3,))), "poisson": lambda f, i: torch.poisson(f(ROWS)),
    "coins": lambda f, i: torch.bernoulli(f(ROWS)), "gamma": lambda f, i: torch._standard_gamma(f(ROWS)), "rank": lambda f, i: L.matrix_rank(f((2, 4, 3))),
    "ldl": lambda f, i: L.ldl_factor_ex(f((2, 3, 3))), "no matrix": lambda f, i: L.pinv(f((2, 0, 3))),
    "lu": lambda f, i: torch.lu_unpack(*L.lu_factor(torch.eye(3).to(f(()).device))), "lu solved": lambda f, i: L.lu_solve(*L.lu_factor(torch.eye(3).to(f(()).device)), f((2, 3, 1))),
    "mantissas": lambda f, i: torch.frexp(f(ROWS)), "numbers": lambda f, i: torch.nan_to_num(f(ROWS)), "one number": lambda f, i: torch.fmax(f(()), f(())),
    "not zero": lambda f, i: torch.count_nonzero(f(ROWS), 0), "places not zero": lambda f, i: torch.nonzero_static(f(ROWS), size=7),
    "a hash": lambda f, i: torch.hash_tensor(f(ROWS), 0), "memory": lambda f, i: torch.as_strided_scatter(f(ROWS), f((2,)), (2,), (1,)),
    "repeats": lambda f, i: torch.repeat_interleave(f(ROWS), i((3,)) + 1, 1, output_size=3), "absolute": lambda f, i: torch.linalg.vector_norm(f(ROWS).cfloat(), dim=0),
    "variance of complex": lambda f, i: torch.var_mean(f(ROWS).cfloat(), 0), "deviation of complex": lambda f, i: f(ROWS).cfloat().std(),
    "largest truth": lambda f, i: (f(ROWS) > 0).amax(0), "product of truths": lambda f, i: (f(ROWS) > 0).prod(0, dtype=torch.bool),
    "integers in a norm": lambda f, i: F.local_response_norm(i((1, 6, 3)), 2),
}  # fmt: skip


@pytest.mark.parametrize("run", BY_VALUES_ELSEWHERE.values(), ids=list(BY_VALUES_ELSEWHERE))
def test_what_goes_by_values_elsewhere_has_the_same_shapes(run) -> None:
    found = []
    for device in ("cpu", "meta"):
        made = run(
            lambda size, device=device: torch.ones(size, device=device).mul(0.5),
            lambda size, device=device: torch.zeros(size, dtype=torch.int64, device=device),
        )
        found.append([(x.shape, x.dtype) for x in (made if isinstance(made, tuple) else (made,))])
    assert found[0] == found[1]


def test_the_shape_of_an_array_without_values_is_known_to_numpy() -> None:
    array = meta(2, 3)._array
    assert (np.shape(array), np.ndim(array), np.size(array)) == ((2, 3), 2, 6)


@pytest.mark.parametrize("run", [
    lambda x: x.to(memory_format=torch.channels_last), lambda x: x.to(torch.float64, memory_format=torch.channels_last),
    lambda x: x.double(memory_format=torch.channels_last), lambda x: x.contiguous(memory_format=torch.channels_last),
    lambda x: torch.empty_like(x, memory_format=torch.channels_last), lambda x: torch.zeros_like(x.contiguous(memory_format=torch.channels_last)),
    lambda x: x.contiguous(memory_format=torch.channels_last).double(), lambda x: torch.cat([x.contiguous(memory_format=torch.channels_last)] * 2),
    lambda x: x.to(x.device, copy=True, memory_format=torch.channels_last),
])  # fmt: skip
def test_memory_formats_are_those_of_the_cpu(run) -> None:
    strides = [run(torch.ones(2, 3, 4, 5, device=device)).stride() for device in ("cpu", "meta")]
    assert strides[0] == strides[1] and strides[0][1] == 1


def test_a_table_without_values_is_scaled_by_nothing() -> None:
    table = torch.empty(4, 3, device="meta")
    assert F.embedding(torch.zeros(2, dtype=torch.int64, device="meta"), table, max_norm=1.0).shape == (2, 3)
    assert [x.shape for x in torch.svd_lowrank(table, q=2)] == [(4, 2), (2,), (3, 2)]
