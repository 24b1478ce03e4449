"""Sparse gradients: what gives them, how they accumulate, and what optimizers do with them."""

import pytest

import rushlight as torch
import rushlight.nn.functional as F
from rushlight.autograd import Function
from rushlight.autograd.gradcheck import GradcheckError

AT = torch.tensor([1, 3, 1])


@pytest.fixture
def table():
    return torch.arange(8.0).reshape(4, 2).requires_grad_()


def looked_up(w, at=AT, **options):
    return F.embedding(at, w, sparse=True, **options)


def dense_gradient(w, of):
    (found,) = torch.autograd.grad(of(w), w)
    return found


def test_the_gradient_of_a_table_has_the_rows_that_were_used(table) -> None:
    (looked_up(table) ** 2).sum().backward()
    g = table.grad
    assert g.is_sparse and g._nnz() == 3 and not g.is_coalesced() and g.shape == (4, 2)
    expected = dense_gradient(table, lambda w: (F.embedding(AT, w) ** 2).sum())
    assert torch.equal(g.to_dense(), expected) and g.coalesce().indices().tolist() == [[1, 3]]
    assert g._values().is_contiguous() and (
        looked_up(table).sum().backward(),
        table.grad._values().add_(1),
    )  # its own memory


def test_rows_of_padding_have_none_and_frequencies_are_refused_by_backward(table) -> None:
    looked_up(table, padding_idx=1).sum().backward()
    assert table.grad._indices().tolist() == [[3]]
    for call in (lambda: looked_up(table, scale_grad_by_freq=True), lambda: torch.embedding(table, AT, -1, True, True),
                 lambda: F.embedding_bag(AT, table, torch.tensor([0]), sparse=True, scale_grad_by_freq=True)):  # fmt: skip
        out = call()
        with torch.no_grad():
            call()
        with pytest.raises(RuntimeError, match="scale_grad_by_freq not supported with sparse gradients"):
            out.sum().backward()
        with pytest.raises(RuntimeError, match="scale_grad_by_freq not supported with sparse gradients"):
            torch.autograd.grad(call().sum(), table, create_graph=True)


@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_bags_have_sparse_gradients(table, mode: str) -> None:
    scale = torch.tensor([1.0, 2.0, 3.0]) if mode == "sum" else None
    found = []
    for sparse in (True, False):
        out = F.embedding_bag(AT, table, torch.tensor([0, 2]), mode=mode, sparse=sparse, per_sample_weights=scale)
        found += torch.autograd.grad((out**2).sum(), table)
    assert found[0].is_sparse and torch.allclose(found[0].to_dense(), found[1])


def test_maxima_of_bags_have_no_sparse_gradients(table) -> None:
    with pytest.raises(ValueError, match="max mode does not support sparse weights"):
        F.embedding_bag(AT, table, torch.tensor([0, 2]), mode="max", sparse=True)


def test_accumulating_keeps_what_is_sparse_and_adds_to_what_is_dense(table) -> None:
    looked_up(table).sum().backward()
    first = table.grad
    looked_up(table, torch.tensor([0])).sum().backward()
    assert table.grad is first and first._indices().tolist() == [[1, 3, 1, 0]]
    (table * 2).sum().backward()
    assert table.grad.tolist() == [[3, 3], [4, 4], [2, 2], [3, 3]]
    dense = table.grad
    looked_up(table).sum().backward()
    assert table.grad is dense and dense.tolist() == [[3, 3], [6, 6], [2, 2], [4, 4]]


def test_what_meets_in_one_backward_is_added(table) -> None:
    two = looked_up(table).sum() + looked_up(table, torch.tensor([[2, 0]])).sum()
    (g,) = torch.autograd.grad(two, table, retain_graph=True)
    assert g.is_sparse and g.to_dense().tolist() == [[1, 1], [2, 2], [1, 1], [1, 1]]
    for mixed in (two + (table * 2).sum(), (table * 2).sum() + two, (table[1:] * 2).sum() + two):
        (g,) = torch.autograd.grad(mixed, table, retain_graph=True)
        assert not g.is_sparse and g[1:].tolist() == [[4, 4], [3, 3], [3, 3]]


def test_behind_another_operator_and_with_a_graph_gradients_are_dense(table) -> None:
    (g,) = torch.autograd.grad(looked_up(table * 2).sum(), table)
    assert g.tolist() == [[0, 0], [4, 4], [0, 0], [2, 2]]
    (g,) = torch.autograd.grad((looked_up(table) ** 3).sum(), table, create_graph=True)
    (again,) = torch.autograd.grad(g.sum(), table)
    assert not g.is_sparse and torch.equal(
        again.to_dense(), dense_gradient(table, lambda w: (3 * F.embedding(AT, w) ** 2).sum())
    )


def test_hooks_see_sparse_gradients_and_may_make_them_dense(table) -> None:
    seen = []
    handle = table.register_hook(lambda g: seen.append(g.layout))
    table.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad._nnz()))
    looked_up(table).sum().backward()
    handle.remove()
    assert seen == [torch.sparse_coo, 3]
    table.grad = None
    table._post_hooks = None
    table.register_hook(lambda g: g.to_dense() * 2)
    looked_up(table).sum().backward()
    assert table.grad.tolist() == [[0, 0], [4, 4], [0, 0], [2, 2]]


def test_custom_functions_may_return_them(table) -> None:
    class Row(Function):
        @staticmethod
        def forward(ctx, w):
            return w[2].clone()

        @staticmethod
        def backward(ctx, g):
            return torch.sparse_coo_tensor([[2]], g[None], (4, 2))

    Row.apply(table).sum().backward()
    assert table.grad.is_sparse and table.grad.to_dense()[2].tolist() == [1, 1]
    (g,) = torch.autograd.grad(Row.apply(table * 3).sum(), table)
    assert g.tolist() == [[0, 0], [0, 0], [3, 3], [0, 0]]
    (g,) = torch.autograd.grad(Row.apply(table * 3).sum(), table, create_graph=True)
    assert g.tolist() == [[0, 0], [0, 0], [3, 3], [0, 0]]


def test_custom_functions_may_save_sparse_tensors(table) -> None:
    class Times(Function):
        @staticmethod
        def forward(ctx, s, d):
            ctx.save_for_backward(s, d)
            return s @ d

        @staticmethod
        def backward(ctx, g):
            s, _ = ctx.saved_tensors
            return None, s.t() @ g

    s = torch.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 4))
    Times.apply(s, table).sum().backward()
    assert torch.equal(table.grad, s.to_dense().t() @ torch.ones(2, 2))


class Model(torch.nn.Module):
    def __init__(self, sparse: bool, dtype) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.rows = torch.nn.Embedding(6, 3, sparse=sparse, dtype=dtype)
        self.bags = torch.nn.EmbeddingBag(6, 3, mode="sum", sparse=sparse, dtype=dtype)

    def forward(self, at):
        return (self.rows(at).sum(1) * self.bags(at)).sum()


@pytest.mark.parametrize("options", [{}, {"momentum": 0.9}, {"momentum": 0.9, "nesterov": True}, {"maximize": True},
                                     {"momentum": 0.5, "dampening": 0.3}], ids=str)  # fmt: skip
def test_sgd_steps_as_by_dense_gradients(options) -> None:
    ended = []
    for sparse in (True, False):
        model = Model(sparse, torch.float64)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, **options)
        for at in ([[0, 1], [1, 1]], [[2, 5], [0, 1]], [[1, 4], [3, 3]]):
            optimizer.zero_grad()
            model(torch.tensor(at)).backward()
            assert model.rows.weight.grad.is_sparse is sparse
            optimizer.step()
        ended.append(torch.cat([p.detach() for p in model.parameters()]))
    assert torch.allclose(*ended)


def test_adagrad_steps_as_by_dense_gradients() -> None:
    ended = []
    for sparse in (True, False):
        model = Model(sparse, torch.float64)
        optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1, lr_decay=0.1, initial_accumulator_value=0.2)
        for at in ([[0, 1], [1, 1]], [[2, 5], [0, 1]]):
            optimizer.zero_grad()
            model(torch.tensor(at)).backward()
            optimizer.step()
        ended.append(torch.cat([p.detach() for p in model.parameters()]))
    assert torch.allclose(*ended)


def test_sparse_adam_moves_the_rows_that_were_used(table) -> None:
    w = torch.nn.Parameter(torch.ones(4, 2))
    looked_up(w).sum().backward()
    optimizer = torch.optim.SparseAdam([w], lr=0.1)
    optimizer.step()
    optimizer.step()
    assert torch.allclose(w.detach(), torch.tensor([[1.0, 1.0], [0.8, 0.8], [1.0, 1.0], [0.8, 0.8]]))
    state = optimizer.state[w]
    assert state["step"] == 2 and torch.allclose(state["exp_avg"][:, 0], torch.tensor([0.0, 0.38, 0.0, 0.19]))
    kept = optimizer.state_dict()
    again = torch.optim.SparseAdam([w], lr=0.2)
    again.load_state_dict(kept)
    assert again.state[w]["step"] == 2 and again.param_groups[0]["lr"] == 0.1
    w.grad = torch.ones(4, 2)
    with pytest.raises(RuntimeError, match="does not support dense gradients"):
        optimizer.step()


@pytest.mark.parametrize("options", [{"lr": -1}, {"eps": 0}, {"betas": (1.0, 0.9)}, {"lr": torch.ones(2)}], ids=str)
def test_sparse_adam_refuses_options(options) -> None:
    with pytest.raises(ValueError, match=r"Invalid|1-element"):
        torch.optim.SparseAdam([torch.ones(2, requires_grad=True)], **options)


@pytest.mark.parametrize("name", ["Adam", "AdamW", "Adadelta", "RMSprop", "Rprop", "NAdam", "RAdam", "Adamax", "ASGD"])
def test_other_optimizers_refuse_them_before_anything_is_changed(table, name: str) -> None:
    other = torch.ones(2, requires_grad=True)
    (looked_up(table).sum() + other.sum()).backward()
    with pytest.raises(RuntimeError, match="does not support sparse gradients"):
        getattr(torch.optim, name)([table, other]).step()
    assert torch.equal(table.detach(), torch.arange(8.0).reshape(4, 2)) and other.tolist() == [1, 1]


@pytest.mark.parametrize("name", ["SGD", "Adagrad"])
def test_weight_decay_is_refused(table, name: str) -> None:
    looked_up(table).sum().backward()
    with pytest.raises(RuntimeError, match="weight_decay"):
        getattr(torch.optim, name)([table], lr=0.1, weight_decay=0.1).step()


def test_zeroing_leaves_no_elements(table) -> None:
    looked_up(table).sum().backward()
    torch.optim.SGD([table], lr=0.1).zero_grad(set_to_none=False)
    assert table.grad.is_sparse and table.grad._nnz() == 0


def test_a_step_inside_backward_takes_them() -> None:
    ended = []
    for inside in (True, False):
        model = Model(True, torch.float64)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        if inside:
            torch.optim.in_backward(optimizer)
        model(torch.tensor([[0, 1], [1, 1]])).backward()
        if not inside:
            optimizer.step()
        ended.append(torch.cat([p.detach() for p in model.parameters()]))
    assert torch.allclose(*ended)


def test_a_sparse_gradient_may_be_assigned(table) -> None:
    g = torch.sparse_coo_tensor([[2]], torch.ones(1, 2), (4, 2))
    table.grad = g
    assert table.grad is g
    torch.optim.SGD([table], lr=1.0).step()
    assert table[2].tolist() == [3, 4] and table[1].tolist() == [2, 3]
    with pytest.raises(RuntimeError, match="size"):
        table.grad = torch.sparse_coo_tensor([[2]], torch.ones(1, 2), (5, 2))


class Wrong(Function):
    """Half of the values of a sum of squares' gradient."""

    @staticmethod
    def forward(ctx, values):
        ctx.save_for_backward(values)
        return (values**2).sum()

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]


def in_layout(layout):
    x = torch.tensor([[1.0, 0.0, 2.0], [0.0, 3.0, 0.5]], dtype=torch.float64)
    return (x.to_sparse() if layout == "coo" else x.to_sparse_csr()).requires_grad_()


@pytest.mark.parametrize("fast_mode", [False, True])
@pytest.mark.parametrize("layout", ["coo", "csr"])
def test_gradcheck_looks_at_the_elements_that_are_stored(layout, fast_mode) -> None:
    x, dense = in_layout(layout), torch.rand(3, 2, dtype=torch.float64).requires_grad_()
    options = {"masked": True, "fast_mode": fast_mode}
    assert torch.autograd.gradcheck(torch.sparse.mm, (x, dense), **options)
    assert torch.autograd.gradcheck(lambda x: x.to_dense() ** 2, x, **options)
    assert torch.autograd.gradgradcheck(torch.sparse.mm, (x, dense), **options)
    with pytest.raises(RuntimeError, match="Jacobian mismatch"):
        torch.autograd.gradcheck(lambda x: Wrong.apply(x.values()), x, **options)
    with pytest.raises(NotImplementedError, match=r"input 0 is sparse, .* pass masked=True"):
        torch.autograd.gradcheck(torch.sparse.mm, (x, dense), fast_mode=fast_mode)
    with pytest.raises(ValueError, match=r"Sparse output is not supported at gradcheck yet\. Please call to_dense"):
        torch.autograd.gradcheck(lambda d: d.to_sparse(), dense)


@pytest.mark.parametrize("layout", ["coo", "csr"])
def test_a_custom_function_of_a_sparse_tensor_that_requires_grad_is_refused(layout) -> None:
    class Dense(Function):
        @staticmethod
        def forward(ctx, x, y):
            return x.to_dense() + y

        @staticmethod
        def backward(ctx, g):
            return None, g

    x, y = in_layout(layout), torch.ones(2, 3, dtype=torch.float64, requires_grad=True)
    with pytest.raises(NotImplementedError, match=r"Dense\.apply.*argument 0 is a sparse tensor that requires grad"):
        Dense.apply(x, y)
    assert Dense.apply(x.detach(), y).requires_grad
    with torch.no_grad():
        assert not Dense.apply(x, y).requires_grad


@pytest.mark.parametrize("layout", ["to_sparse", "to_sparse_csr", "to_sparse_csc"])
def test_a_dense_tensor_made_sparse_has_the_gradient_of_the_elements_that_are_stored(layout: str) -> None:
    x = torch.tensor([[1.0, 0, 2], [0, 3, 0]], requires_grad=True)
    rows = torch.tensor([1.0, 5.0, 9.0])
    (getattr(x, layout)() @ torch.arange(6.0).reshape(3, 2)).sum().backward()
    assert x.grad is not None and x.grad.equal(rows * (x.detach() != 0))


def test_backward_begins_with_sparse_gradients() -> None:
    given = torch.sparse_coo_tensor([[0, 2, 2]], torch.ones(3, 2), (4, 2))
    x = torch.ones(4, 2, requires_grad=True)
    x.backward(given)
    assert x.grad.is_sparse and x.grad.to_dense().tolist() == [[1, 1], [0, 0], [2, 2], [0, 0]]
    x.backward(given.double())
    assert x.grad.is_sparse and x.grad.to_dense()[2].tolist() == [4, 4]
    (found,) = torch.autograd.grad(x * 3, x, given)
    assert found.tolist() == [[3, 3], [0, 0], [6, 6], [0, 0]]
    torch.autograd.backward([x * 2, x], [given, given])
    assert x.grad.to_dense()[2].tolist() == [10, 10]
    number = torch.ones((), requires_grad=True)
    (number * 2).backward(torch.tensor(3.0).to_sparse())
    assert number.grad.item() == 6
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        x.backward(torch.ones(2, 2).to_sparse())


def test_gradcheck_refuses_them_of_dense_inputs() -> None:
    class Rows(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return (g * 2).to_sparse()

    x = torch.ones(3, dtype=torch.float64, requires_grad=True)
    with pytest.raises(GradcheckError, match="grad is incorrect layout"):
        torch.autograd.gradcheck(Rows.apply, x)


def test_lbfgs_takes_them() -> None:
    rows = []
    for sparse in (True, False):
        table = torch.nn.Embedding(4, 2, sparse=sparse)
        torch.nn.init.ones_(table.weight)
        optimizer = torch.optim.LBFGS(table.parameters(), max_iter=3)

        def closure(table=table, optimizer=optimizer):
            optimizer.zero_grad()
            loss = (table(torch.tensor([1, 1, 2])) ** 2).sum()
            loss.backward()
            return loss

        optimizer.step(closure)
        rows.append(table.weight.detach())
    torch.testing.assert_close(*rows)


@pytest.mark.parametrize("made", [torch.Tensor.to_sparse, torch.Tensor.to_sparse_csr, torch.Tensor.to_sparse_csc])
def test_a_sparse_tensor_can_be_asked_for_its_gradient(made):
    x, other = made(torch.eye(3)).requires_grad_(), made(torch.eye(3)).requires_grad_()
    loss = (x @ torch.arange(3.0).reshape(3, 1)).square().sum()
    (found,) = torch.autograd.grad(loss, x, retain_graph=True)
    assert found.layout is x.layout and found.to_dense().diagonal().tolist() == [0.0, 2.0, 8.0]
    loss.backward(inputs=[x], retain_graph=True)
    assert x.grad.to_dense().equal(found.to_dense())
    assert torch.autograd.grad(loss, [x, other], allow_unused=True, retain_graph=True)[1] is None
    (_, zeros) = torch.autograd.grad(loss, [x, other], materialize_grads=True)
    assert zeros.layout is x.layout and not zeros.to_dense().any()
