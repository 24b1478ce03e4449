"""Operators below `torch.nn.functional` where programs find them: in `torch._C._nn` and in `torch` itself."""

import numpy as np
import pytest

import rushlight as torch
from rushlight.nn import functional


def test_functions_have_the_arguments_of_operators() -> None:
    x = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    nn = torch._C._nn
    np.testing.assert_array_equal(nn.gelu(x, approximate="tanh"), functional.gelu(x, approximate="tanh"))
    np.testing.assert_array_equal(
        nn.upsample_bilinear2d(x, [4, 4], False, None, None),
        functional.interpolate(x, (4, 4), mode="bilinear", align_corners=False),
    )
    np.testing.assert_array_equal(nn.mse_loss(x, x + 1, 0), torch.ones(2, 3, 8, 8) * ((x - (x + 1)) ** 2))
    np.testing.assert_array_equal(torch._softmax(x, 1, False), x.softmax(1))
    assert torch._unique2(x > 0, True, True, True)[0].tolist() == [False, True]
    assert nn._parse_to("cpu", torch.float64)[1] is torch.float64


def test_what_is_not_computed_is_not_there() -> None:
    with pytest.raises(AttributeError, match="nothing computes it"):
        torch._C._nn._embedding_bag
    with pytest.raises(AttributeError, match="nonesuch"):
        torch._C._nn.nonesuch


def test_operators_tell_what_they_do() -> None:
    aten, tag = torch.ops.aten, torch.Tag
    for overload, marks in (
        (aten.add.Tensor, {tag.pointwise}), (aten.t_.default, {tag.inplace_view, tag.inplace}), (aten.bernoulli.default, {tag.nondeterministic_seeded}),
        (aten.nonzero.default, {tag.dynamic_output_shape}), (aten.equal.default, {tag.data_dependent_output}), (aten.mm.default, set()),
        (aten.view_copy.default, {tag.view_copy}), (aten.mm.out, {tag.out}),
    ):  # fmt: skip
        assert set(overload.tags) == marks, overload
    assert aten.view.default.is_view and not aten.add.Tensor.is_view
    assert (
        aten.add.Tensor.has_kernel_for_dispatch_key("CPU")
        and aten.sin.default.decompose(torch.ones(1)) is NotImplemented
    )
