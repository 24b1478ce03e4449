"""What an operator refuses it refuses in place too; numbers can be copied into tensors."""

import pytest

import rushlight as torch

Z = (1 + 1j, 2)


@pytest.mark.parametrize("name", ["clamp_", "clip_", "clamp_min_", "clamp_max_"])
def test_complex_numbers_have_no_order_to_limit_by(name: str) -> None:
    x = torch.tensor(Z)
    with pytest.raises(NotImplementedError, match="complex"):
        getattr(x, name)(0)
    assert x.tolist() == list(Z) and x._version == 0


@pytest.mark.parametrize("name", ["floor_", "ceil_", "trunc_"])
def test_complex_numbers_are_not_rounded(name: str) -> None:
    with pytest.raises(NotImplementedError):
        getattr(torch.tensor(Z), name)()


def test_refusals_of_other_kinds_hold_in_place() -> None:
    with pytest.raises((RuntimeError, NotImplementedError)):
        torch.ones(2, dtype=torch.int64).lerp_(torch.zeros(2, dtype=torch.int64), 0.5)
    with pytest.raises((RuntimeError, NotImplementedError, TypeError)):
        torch.ones(2, dtype=torch.bool).neg_()


@pytest.mark.parametrize("number", [2.5, 0, True])
def test_a_number_is_copied_to_every_element(number: float) -> None:
    x = torch.zeros(2, 3)
    assert x.copy_(number) is x and x.tolist() == [[float(number)] * 3] * 2 and x._version == 1
    assert torch.zeros(2, dtype=torch.int32).copy_(number).tolist() == [int(number)] * 2


def test_copying_a_number_cuts_the_history() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x * 3
    y[0].copy_(5.0)
    y.sum().backward()
    assert y.tolist() == [5, 3] and x.grad.tolist() == [0, 3]


def test_no_dimension_is_no_several() -> None:
    with pytest.raises(RuntimeError, match="no dimensions"):
        torch.tensor(1.0).unflatten(0, (1, 1))


def test_elements_that_share_memory_are_filled_also_beside_the_graph():
    base = torch.ones(1, 3)
    base.expand(2, 3).data.zero_()
    assert base.tolist() == [[0.0, 0.0, 0.0]]
    assert base.expand(2, 3).detach().fill_(2).tolist() == [[2.0] * 3] * 2


B = torch.tensor([True, False])
PRODUCTS = {
    "dot": lambda: B @ B,
    "mv": lambda: torch.stack([B, B]) @ B,
    "mm": lambda: torch.stack([B, B]) @ torch.stack([B, B]),
    "bmm": lambda: torch.stack([B, B])[None] @ torch.stack([B, B])[None],
    "addmm": lambda: torch.addmv(B, torch.stack([B, B]), B),
    "addcmul": lambda: B.addcmul(B, B),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_bools_have_no_products_that_are_added(name: str) -> None:
    with pytest.raises(
        NotImplementedError, match=rf"\"{name}\" not implemented for .Bool.: expected .* got torch.bool"
    ):
        PRODUCTS[name]()


@pytest.mark.parametrize("name", ["cumsum_", "cumprod_"])
def test_a_bool_tensor_cannot_hold_what_is_accumulated(name: str) -> None:
    with pytest.raises(RuntimeError, match=name):
        getattr(B.clone(), name)(0)


@pytest.mark.parametrize("dtype", [torch.bool, torch.float32])
def test_no_complex_number_is_filled_into_slices_of_another_kind(dtype: torch.dtype) -> None:
    x = torch.zeros(2, dtype=dtype)
    with pytest.raises(RuntimeError, match="complex number"):
        x.index_fill_(0, torch.tensor([0]), 1 + 0j)
    assert not x.any()
