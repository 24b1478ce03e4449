"""What trainers, optimizers and layers of packages take from below PyTorch's public names."""

from __future__ import annotations

import pytest
from tests.processes import printed_as_torch

import rushlight as torch
from rushlight import nn
from rushlight.compat.rooms._foreach_utils import _group_tensors_by_device_and_dtype
from rushlight.compat.rooms.grad_scaler import OptState, _refresh_per_optimizer_state
from rushlight.jit import _state
from rushlight.nn import functional as F
from rushlight.optim import swa_utils
from rushlight.utils.data import DataLoader


class Doubled(DataLoader):
    """A loader that wraps what a pass iterates over, as torch_geometric's do."""

    def _get_iterator(self):
        return (2 * batch for batch in super()._get_iterator())


def test_loaders_wrap_their_passes() -> None:
    loader = Doubled(torch.arange(4), batch_size=2)
    assert [batch.tolist() for batch in loader] == [[0, 2], [4, 6]] == [batch.tolist() for batch in loader]


def test_workers_that_persist_are_ended_by_trainers() -> None:
    loader = DataLoader(torch.arange(4), batch_size=2, num_workers=1, persistent_workers=True)
    for _ in range(2):
        assert [batch.tolist() for batch in loader] == [[0, 1], [2, 3]]
        assert loader._iterator is not None
        loader._iterator._shutdown_workers()
    loader._iterator = None
    assert len(list(loader)) == 2
    loader._iterator._shutdown_workers()


def test_gradients_are_checked_and_divided_in_place() -> None:
    found, grads = torch.zeros(1), [torch.tensor([2.0, 4.0]), torch.ones(1, 1)]
    torch._amp_foreach_non_finite_check_and_unscale_(grads, found, torch.tensor(0.5))
    assert grads[0].tolist() == [1, 2] and grads[1].item() == 0.5 and found.item() == 0
    torch._amp_foreach_non_finite_check_and_unscale_([torch.tensor([torch.inf])], found, torch.tensor(0.5))
    assert found.item() == 1
    with pytest.raises(RuntimeError, match="inv_scale must be a 1-element tensor"):
        torch._amp_foreach_non_finite_check_and_unscale_(grads, found, torch.ones(2))
    with pytest.raises(RuntimeError, match="found_inf must be a float tensor"):
        torch._amp_foreach_non_finite_check_and_unscale_(grads, found.int(), torch.ones(1))


def test_scales_grow_after_good_steps_and_shrink_after_others() -> None:
    scale, tracker, good, bad = torch.tensor(8.0), torch.tensor(0, dtype=torch.int32), torch.zeros(1), torch.ones(1)
    values = []
    for found in (good, good, good, bad):
        assert torch._amp_update_scale_(scale, tracker, found, 2.0, 0.5, 2) is scale
        values.append((scale.item(), tracker.item()))
    assert values == [(8, 1), (16, 0), (16, 1), (8, 0)]
    largest = torch.tensor(3e38)
    assert torch._amp_update_scale_(largest, tracker + 1, good, 2.0, 0.5, 2).item() == pytest.approx(3e38)
    with pytest.raises(RuntimeError, match="growth_tracker must be an int tensor"):
        torch._amp_update_scale_(scale, tracker.long(), good, 2.0, 0.5, 2)
    assert _refresh_per_optimizer_state() == {"stage": OptState.READY, "found_inf_per_device": {}}


def test_optimizers_written_after_pytorchs_find_its_helpers() -> None:
    optimizer = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=0.1)
    optimizer._cuda_graph_capture_health_check()
    x, y = torch.ones(1), torch.ones(2, dtype=torch.float64)
    grouped = optimizer._group_tensors_by_device_and_dtype([[x, y], [y, x]], with_indices=True)
    assert grouped == {(x.device, x.dtype): ([[x], [y]], [0]), (y.device, y.dtype): ([[y], [x]], [1])}
    assert swa_utils._group_tensors_by_device_and_dtype is _group_tensors_by_device_and_dtype


def test_shapes_of_attention() -> None:
    q, k = torch.ones(2, 1, 4), torch.ones(3, 1, 4)
    assert F._mha_shape_check(q, k, k, None, torch.ones(2, 3), 2)
    assert not F._mha_shape_check(q[:, 0], k[:, 0], k[:, 0], torch.ones(3), torch.ones(2, 2, 3), 2)
    for arguments, words in (
        ((q, k[:, 0], k, None, None), r"For batched \(3-D\) `query`, expected `key` and `value` to be 3-D"),
        ((q[0, 0], k, k, None, None), "query should be unbatched 2D or batched 3D tensor but received 1-D"),
        ((q[:, 0], k[:, 0], k[:, 0], k[0], None), "expected `key_padding_mask` to be `None` or 1-D"),
        ((q, k, k, None, torch.ones(3)), "expected `attn_mask` to be `None`, 2-D or 3-D but found 1-D"),
        ((q[:, 0], k[:, 0], k[:, 0], None, torch.ones(1, 2, 3)), r"Expected `attn_mask` shape to be \(2, 2, 3\)"),
    ):
        with pytest.raises(AssertionError, match=words):
            F._mha_shape_check(*arguments, 2)


def test_weights_of_eight_and_of_four_bits() -> None:
    torch.manual_seed(0)
    x, w8, scales = torch.randn(3, 64), torch.randint(-128, 128, (16, 64), dtype=torch.int8), torch.rand(16)
    assert torch._weight_int8pack_mm(x, w8, scales).equal(x @ w8.float().t() * scales)
    numbers, of_groups = torch.randint(0, 16, (16, 64), dtype=torch.int32), torch.randn(2, 16, 2)
    packed = torch._convert_weight_to_int4pack_for_cpu(numbers, 1)
    assert packed.dtype is torch.uint8 and packed.shape == (16, 32)
    by_group = (numbers.reshape(16, 2, 32) - 8) * of_groups[..., 0].t()[..., None] + of_groups[..., 1].t()[..., None]
    wanted = x @ by_group.reshape(16, 64).t()
    torch.testing.assert_close(torch._weight_int4pack_mm_for_cpu(x, packed, 32, of_groups), wanted)
    half = torch.ops.aten._weight_int4pack_mm_for_cpu(x.bfloat16(), packed, 32, of_groups.bfloat16())
    assert half.dtype is torch.bfloat16 and half.shape == (3, 16)
    for call, words in (
        (lambda: torch._weight_int8pack_mm(x, numbers, scales), "expect B to be int8"),
        (lambda: torch._weight_int8pack_mm(x, w8, scales[:3]), "expect scales to be 1d tensor with size 16"),
        (lambda: torch._convert_weight_to_int4pack_for_cpu(numbers[:3], 1), "expect N to be dividable by 16"),
        (lambda: torch._weight_int4pack_mm_for_cpu(x, packed, 16, of_groups), "expect qGroupSize to be 32, 64, 128"),
        (lambda: torch._weight_int4pack_mm_for_cpu(x, packed, 64, of_groups), "expect qScaleAndZeros to be 3d"),
    ):
        with pytest.raises(RuntimeError, match=words):
            call()


def test_operators_as_layers() -> None:
    layer, x = torch.ao.nn.quantized.FloatFunctional(), torch.tensor([-2.0, 3.0])
    seen = []
    layer.activation_post_process.register_forward_hook(lambda module, given, result: seen.append(result.tolist()))
    results = [layer.add(x, x), layer.mul(x, x), layer.cat([x, x]), layer.add_relu(x, x), layer.matmul(x, x)]
    assert [r.tolist() for r in results] == seen == [[-4, 6], [4, 9], [-2, 3, -2, 3], [0, 6], 13]
    assert layer.add_scalar(x, 1).tolist() == [-1, 4] and layer.mul_scalar(x, 2).tolist() == [-4, 6] and len(seen) == 5
    with pytest.raises(RuntimeError, match="not intended to use the 'forward'"):
        layer(x)
    assert not list(torch.ao.nn.quantized.FXFloatFunctional().children())


def test_small_names() -> None:
    drawn = torch._sample_dirichlet(torch.tensor([[1.0, 2.0], [0.01, 0.02]]))
    assert drawn.shape == (2, 2) and drawn.sum(-1).tolist() == pytest.approx([1, 1])
    _state.disable()
    assert not _state._enabled
    _state.enable()
    assert _state._enabled
    assert torch.ByteStorage._from_buffer(b"ab").tolist() == [97, 98]


def test_older_names_of_quantized_layers() -> None:
    program = "import torch\nfrom torch.nn.quantized import FloatFunctional\nassert torch.nn.quantized.FloatFunctional is FloatFunctional"
    printed_as_torch(program)
