"""Complex numbers that become real ones lose a part, which is told of."""

import pytest

import rushlight as torch

C = torch.tensor([1 + 2j])
CASTS = {
    "to": lambda: C.to(torch.float32),
    "method": lambda: C.double(),
    "integers": lambda: C.to(torch.int64),
    "half": lambda: C.half(),
    "type_as": lambda: C.type_as(torch.zeros(1)),
    "copy_": lambda: torch.zeros(1).copy_(C),
    "assignment": lambda: torch.zeros(1).__setitem__(slice(None), C),
    "fill_": lambda: torch.zeros(1).fill_(C[0]),
    "as_tensor": lambda: torch.as_tensor(C, dtype=torch.float32),
    "asarray": lambda: torch.asarray(C, dtype=torch.float32),
    "sum": lambda: C.sum(dtype=torch.float32),
    "prod": lambda: C.prod(dtype=torch.float32),
    "cumsum": lambda: C.cumsum(0, dtype=torch.float32),
    "mean": lambda: C.mean(dtype=torch.float32),
    "softmax": lambda: torch.softmax(C, 0, dtype=torch.float32),
}


@pytest.mark.parametrize("name", CASTS)
def test_a_cast_to_real_numbers_warns(name):
    with pytest.warns(UserWarning, match="Casting complex values to real discards the imaginary part"):
        CASTS[name]()


def test_what_loses_nothing_is_silent():
    x = torch.ones(1, requires_grad=True)
    (x.to(torch.complex64) * C).real.sum().backward()  # the gradient of a real tensor is real
    assert x.grad.tolist() == [1.0]
    assert C.to(torch.bool).tolist() == [True]
    assert C.real.tolist() == [1.0]
    assert torch.tensor([1.0]).copy_(C.abs()).tolist() == pytest.approx([5**0.5])


def test_a_list_of_complex_tensors_makes_no_real_tensor():
    with pytest.raises(TypeError, match="must be real number, not complex"):
        torch.tensor([C[0], C[0]], dtype=torch.float32)


def test_new_tensor_of_a_tensor_warns_as_tensor_does():
    with pytest.warns(UserWarning, match="To copy construct from a tensor"):
        torch.zeros(1).new_tensor(torch.ones(1))


def test_complex_numbers_with_an_imaginary_part_are_no_floats_nor_ints():
    assert (float(torch.tensor(1 + 0j)), int(torch.tensor(2 + 0j)), complex(torch.tensor(1.5))) == (1.0, 2, 1.5)
    for convert in (float, int):
        with pytest.raises(RuntimeError, match="without overflow"):
            convert(torch.tensor(1 + 1j))
