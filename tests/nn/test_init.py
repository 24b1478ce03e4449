"""Initial weights."""

import math
from typing import Any

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn import init


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


def test_gains() -> None:
    assert init.calculate_gain("conv2d") == 1 and init.calculate_gain("tanh") == 5 / 3
    assert init.calculate_gain("leaky_relu", 2) == math.sqrt(0.4)
    with pytest.raises(ValueError, match="not a valid number"):
        init.calculate_gain("leaky_relu", "x")


def spread(x: Any) -> tuple[float, float]:
    return x.abs().max().item(), x.std().item()


def test_standard_deviations() -> None:
    w = torch.empty(100, 50, 4)
    assert spread(init.kaiming_normal_(w, nonlinearity="relu"))[1] == pytest.approx(math.sqrt(2 / 200), rel=0.03)
    assert spread(init.kaiming_normal_(w, mode="fan_out"))[1] == pytest.approx(math.sqrt(2 / 400), rel=0.03)
    assert spread(init.xavier_normal_(w, gain=3.0))[1] == pytest.approx(3 * math.sqrt(2 / 600), rel=0.03)
    limit, std = spread(init.xavier_uniform_(w))
    assert limit <= math.sqrt(6 / 600) and std == pytest.approx(math.sqrt(2 / 600), rel=0.03)
    limit, std = spread(init.kaiming_uniform_(w, a=math.sqrt(5)))
    assert limit <= 1 / math.sqrt(200) and std == pytest.approx(1 / math.sqrt(600), rel=0.03)
    limit, std = spread(init.trunc_normal_(w, std=2.0, a=-1.0, b=1.0))
    assert limit <= 1 and std == pytest.approx(0.5665, rel=0.05)
    assert spread(init.trunc_normal_(w))[1] == pytest.approx(0.8796, rel=0.03)
    assert spread(init.trunc_normal_(w, std=0.02))[1] == pytest.approx(0.02, rel=0.03)


def test_exact_values() -> None:
    assert init.eye_(torch.empty(2, 3)).tolist() == [[1, 0, 0], [0, 1, 0]]
    assert init.ones_(torch.empty(2)).tolist() == [1, 1] and init.zeros_(torch.ones(2)).tolist() == [0, 0]
    kernel = init.dirac_(torch.empty(4, 2, 3), groups=2)
    assert kernel.sum().item() == 4 and kernel[3, 1, 1].item() == 1 and kernel[2, 0, 1].item() == 1
    x = torch.randn(1, 2, 5)
    assert torch.equal(torch.nn.functional.conv1d(x, init.dirac_(torch.empty(2, 2, 3)), padding=1), x)
    sparse = init.sparse_(torch.empty(10, 4), 0.25)
    assert (sparse == 0).sum(0).tolist() == [3, 3, 3, 3]


@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (4, 2, 3)])
def test_orthogonal(shape: Any) -> None:
    w = init.orthogonal_(torch.empty(shape, dtype=torch.float64), gain=2.0).reshape(shape[0], -1)
    small = w @ w.t() if w.shape[0] < w.shape[1] else w.t() @ w
    assert (small - 4 * torch.eye(len(small), dtype=torch.float64)).abs().max().item() < 1e-10


def test_narrow_truncation() -> None:
    w = init.trunc_normal_(torch.empty(20_000), std=1.0, a=1.5, b=2.0)
    assert w.min().item() >= 1.5 and w.max().item() <= 2 and w.mean().item() == pytest.approx(1.7182, rel=0.01)


def test_nothing_is_recorded() -> None:
    p = nn.Parameter(torch.empty(3, 3))
    assert init.normal_(p) is p and p.grad_fn is None and p.requires_grad


def test_generators() -> None:
    draws = [init.uniform_(torch.empty(5), generator=torch.Generator().manual_seed(3)) for _ in range(2)]
    assert torch.equal(*draws)


def test_deprecated_names_warn() -> None:
    with pytest.warns(FutureWarning, match="nn.init.constant_"):
        init.constant(torch.empty(1), 2)
    with pytest.warns(UserWarning, match="zero-element"):
        init.kaiming_uniform_(torch.empty(0, 2))
    with pytest.warns(UserWarning, match="2 std"):
        init.trunc_normal_(torch.empty(2), mean=10)


def test_layers_begin_as_in_pytorch() -> None:
    for layer, fan in ((nn.Linear(50, 60), 50), (nn.Conv2d(4, 60, 3), 36), (nn.ConvTranspose1d(8, 40, 3), 120)):
        for p in layer.parameters():
            assert spread(p)[0] <= 1 / math.sqrt(fan)
        assert spread(layer.weight)[1] == pytest.approx(1 / math.sqrt(3 * fan), rel=0.1)
    assert spread(nn.Embedding(100, 50).weight)[1] == pytest.approx(1, rel=0.05)
    assert spread(nn.LSTM(3, 25).weight_hh_l0)[0] <= 0.2


@pytest.mark.filterwarnings("ignore:mean is more than 2 std")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize(
    ("limits", "inside"),
    [((0, 1, 5, 6), (5, 5.4)), ((10, 1, -1, 1), (0.5, 1)), ((-10, 1, -1, 1), (-1, -0.5)), ((0, 0.02, 1, 2), (1, 1.01)),
     ((3, 0.001, 1, 2), (1.99, 2)), ((0, 1, 30, 1000), (30, 30.3))],
)  # fmt: skip
def test_normal_values_far_from_their_mean_lie_at_the_nearer_bound(dtype, limits, inside) -> None:
    drawn = init.trunc_normal_(torch.empty(1000, dtype=dtype), *limits).double()
    low, high = limits[2:]
    assert low <= drawn.min() and drawn.max() <= high
    assert ((drawn >= inside[0]) & (drawn <= inside[1])).double().mean() > 0.8


@pytest.mark.filterwarnings("ignore:mean is more than 2 std")
def test_means_of_normal_values_behind_a_bound_are_those_of_the_distribution() -> None:
    drawn = init.trunc_normal_(torch.empty(20_000, dtype=torch.float64), 0, 1, 30, 1000)
    assert float(drawn.mean()) - 30 == pytest.approx(0.03326, rel=0.05)  # density over tail, less 30
    drawn = init.trunc_normal_(torch.empty(20_000, dtype=torch.float64), 2.5, 1, -1, 1)
    assert float(drawn.mean()) == pytest.approx(0.5640, abs=0.01)


def test_what_packages_call_below_the_public_names() -> None:
    w = torch.empty(200, 50)
    assert init._no_grad_trunc_normal_(w, 0.0, 2.0, -1.0, 1.0) is w and -1 <= w.min() < w.max() <= 1
    assert init._no_grad_fill_(w, 3.0) is w and w.unique().tolist() == [3]
    assert init._no_grad_zero_(w) is w and not w.any()
