"""What layers compute, where a short check says it all; `tests/parity` and the operators' tests do the rest."""

from typing import Any

import pytest

import rushlight as torch
from rushlight import nn


def test_batch_norm_keeps_running_statistics() -> None:
    norm = nn.BatchNorm1d(2, momentum=0.5)
    x = torch.tensor([[1.0, 10.0], [3.0, 30.0]])
    y = norm(x)
    assert y.mean(0).abs().max().item() < 1e-6
    assert norm.running_mean.tolist() == [1.0, 10.0] and norm.running_var.tolist() == [1.5, 100.5]
    assert norm.num_batches_tracked.item() == 1
    norm.eval()(x)
    assert norm.num_batches_tracked.item() == 1
    average = nn.BatchNorm1d(2, momentum=None)
    average(x)
    average(3 * x)
    assert average.running_mean.tolist() == [4.0, 40.0]


def test_normalisations_without_parameters() -> None:
    for layer in (nn.LayerNorm(3, elementwise_affine=False), nn.GroupNorm(1, 3, affine=False), nn.InstanceNorm1d(3)):
        assert not list(layer.parameters())


def test_sync_batch_norm_replaces_batch_norm() -> None:
    net = nn.Sequential(nn.BatchNorm2d(3), nn.Sequential(nn.BatchNorm1d(2)))
    converted = nn.SyncBatchNorm.convert_sync_batchnorm(net)
    assert [type(m).__name__ for m in converted.modules()] == [
        "Sequential", "SyncBatchNorm", "Sequential", "SyncBatchNorm",
    ]  # fmt: skip


def test_transposed_convolution_has_the_asked_size() -> None:
    down, up = nn.Conv2d(1, 1, 3, stride=2, padding=1), nn.ConvTranspose2d(1, 1, 3, stride=2, padding=1)
    x = torch.randn(1, 1, 12, 12)
    assert up(down(x)).shape == (1, 1, 11, 11)
    assert up(down(x), output_size=x.size()).shape == x.shape
    with pytest.raises(ValueError, match="valid sizes range from"):
        up(down(x), output_size=(20, 20))


def test_padding_of_a_size_is_asked_for_windows_of_others() -> None:
    """Packages with convolutions of their own do so, some without a module."""
    up, x = nn.ConvTranspose2d(3, 2, 3, stride=2, dilation=2, output_padding=1), torch.zeros(1, 3, 10, 10)
    sizes = (up.stride, up.padding, up.kernel_size, 2)
    assert list(up._output_padding(x, None, *sizes, up.dilation)) == [1, 1]
    assert list(up._output_padding(x, [24, 23], *sizes, up.dilation)) == [1, 0]
    assert list(up._output_padding(x, [1, 2, 21, 22], *sizes)) == [0, 1]
    without: Any = nn.modules.conv._ConvTransposeNd._output_padding
    assert without(None, x, (21, 20), (2, 2), (0, 0), (2, 2), 2, dilation=(1, 1)) == [1, 0]


@pytest.mark.parametrize("mode", ["zeros", "reflect", "replicate", "circular"])
def test_same_padding_keeps_the_size(mode: str) -> None:
    assert nn.Conv1d(1, 1, 4, padding="same", padding_mode=mode, dilation=2)(torch.randn(1, 1, 9)).shape == (1, 1, 9)


def test_embedding() -> None:
    table = nn.Embedding(4, 2, padding_idx=-1)
    assert table.padding_idx == 3 and table.weight[3].tolist() == [0.0, 0.0]
    table(torch.tensor([3, 1])).sum().backward()
    assert table.weight.grad.tolist() == [[0, 0], [1, 1], [0, 0], [0, 0]]
    given = nn.Embedding.from_pretrained(torch.eye(3))
    assert not given.weight.requires_grad and given(torch.tensor(1)).tolist() == [0.0, 1.0, 0.0]


def test_adaptive_softmax_sums_to_one() -> None:
    layer = nn.AdaptiveLogSoftmaxWithLoss(8, 12, [3, 7], div_value=2.0).double()
    x, target = torch.randn(5, 8, dtype=torch.float64), torch.tensor([0, 3, 11, 7, 2])
    everything = layer.log_prob(x)
    assert (everything.exp().sum(1) - 1).abs().max().item() < 1e-10
    output, loss = layer(x, target)
    assert (output - everything[torch.arange(5), target]).abs().max().item() < 1e-10
    assert loss.item() == pytest.approx(-output.mean().item())
    assert torch.equal(layer.predict(x), everything.argmax(1))


def causal(n: int) -> Any:
    return nn.Transformer.generate_square_subsequent_mask(n)


def test_causal_encoder_does_not_look_ahead() -> None:
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2).eval()
    x = torch.randn(1, 5, 8)
    changed = x.clone()
    changed[:, 3:] += 1
    with torch.no_grad():
        a, b = encoder(x, mask=causal(5)), encoder(changed, mask=causal(5))
    assert (a[:, :3] - b[:, :3]).abs().max().item() < 1e-6 < (a[:, 3:] - b[:, 3:]).abs().max().item()


def test_padding_is_not_attended_to() -> None:
    attention = nn.MultiheadAttention(8, 2, batch_first=True).eval()
    x = torch.randn(1, 4, 8)
    mask = torch.tensor([[False, False, True, True]])
    short, _ = attention(x, x[:, :2], x[:, :2])
    padded, weights = attention(x, x, x, key_padding_mask=mask)
    assert (short - padded).abs().max().item() < 1e-6 and weights[..., 2:].abs().max().item() == 0


def test_transformer_runs_forward_and_backward() -> None:
    net = nn.Transformer(8, 2, 1, 1, 16, batch_first=True)
    y = net(torch.randn(2, 4, 8), torch.randn(2, 3, 8), tgt_mask=causal(3))
    y.sum().backward()
    assert y.shape == (2, 3, 8) and all(p.grad is not None for p in net.parameters())


def test_losses_take_deprecated_arguments() -> None:
    with pytest.warns(UserWarning, match="reduction='sum'"):
        assert nn.MSELoss(size_average=False).reduction == "sum"


def test_linear_cross_entropy_is_both_in_one() -> None:
    loss = nn.LinearCrossEntropyLoss(3, 4, bias=True)
    x, target = torch.randn(5, 3), torch.tensor([0, 1, 2, 3, 0])
    wanted = nn.CrossEntropyLoss()(loss.linear(x), target)
    assert loss(x, target).item() == pytest.approx(wanted.item(), rel=1e-5)


@pytest.mark.parametrize("causal_mask", [False, True])
def test_attention_is_the_same_without_its_weights(causal_mask: bool) -> None:
    """Values and gradients of the way that keeps no probabilities and of the one that returns them."""
    attention = nn.MultiheadAttention(8, 2).double()
    x = torch.randn(5, 3, 8, dtype=torch.float64, requires_grad=True)
    mask = causal(5).double() if causal_mask else None
    found = []
    for need_weights in (True, False):
        y, _ = attention(x, x, x, need_weights=need_weights, attn_mask=mask)
        cotangent = torch.arange(120.0, dtype=torch.float64).reshape(5, 3, 8).sin()
        found.append([y, *torch.autograd.grad((y * cotangent).sum(), [x, *attention.parameters()])])
    assert all((a - b).abs().max().item() < 1e-12 for a, b in zip(*found))


def test_choice_of_attention_is_accepted() -> None:
    with nn.attention.sdpa_kernel([nn.attention.SDPBackend.MATH]):
        pass
    with pytest.raises(AssertionError, match="SDPBackend"), nn.attention.sdpa_kernel("math"):
        pass
