"""What nodes show of what they saved, by PyTorch's names, and hooks on saved tensors one by one: beside PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight

reference = pytest.importorskip("torch")
pytestmark = pytest.mark.parity

SAVED = """
torch.stack([a, a], 1) | dim
a + a | alpha
a - a | alpha
a.mean() | self_sym_sizes self_sym_numel
a.sum(1) | self_sym_sizes dim keepdim
a.view(4, 3) | self_sym_sizes
a[:, i] | self_sym_sizes indices
a[1:] | dim start end step
a[:, 1:3] | dim start end step self_sym_sizes
a.select(1, 2) | dim index
a.split(2, 1)[0] | dim split_size
a.unsqueeze(1) | dim
a.mm(a.T) | self_sym_sizes self_sym_strides mat2_sym_sizes mat2_sym_strides
a.clamp(0, 1) | min max
a.clamp(min=0.5) | min max
torch.div(a, 2.0, rounding_mode="trunc") | rounding_mode
torch.div(a, a, rounding_mode="floor") | rounding_mode
torch.div(a, a, rounding_mode=None) | rounding_mode
torch.linalg.vector_norm(a, 3.0) | ord dim keepdim
a.as_strided((3,), (1,), 1) | storage_offset size stride
a.as_strided((3,), (1,)) | storage_offset
a.unfold(1, 2, 1) | dimension size step
torch.threshold(a, torch.tensor(1 + 0j), 1) | threshold
torch.threshold(a, False, False) | threshold
a.max(1)[0] | indices dim
F.mse_loss(a, a * 2) | reduction
F.embedding(i, a, scale_grad_by_freq=True) | scale_grad_by_freq weight_sym_argsize_0
F.conv2d(c, c[:, :, :2, :2]) | stride padding transposed output_padding groups
F.max_pool2d(c, 2, 2, padding=1) | kernel_size stride padding dilation
F.interpolate(c[0], 4, mode="linear") | output_size align_corners scales
F.interpolate(c[0], scale_factor=0.5, mode="linear") | scales
F.interpolate(c, scale_factor=(2.0, 1.5), mode="bicubic", align_corners=True) | output_size align_corners scales_h scales_w
F.interpolate(c, (4, 4)) | output_size scales_h self_sym_sizes
F.layer_norm(a, (4,)) | normalized_shape
F.batch_norm(a, torch.zeros(4), torch.ones(4), torch.ones(4)) | running_var training
torch._foreach_maximum([a, a], [0.0, 1.0])[1] | scalars
"""


def shown(x: Any) -> Any:
    if hasattr(x, "requires_grad"):
        return str(x.dtype).split(".")[-1], x.requires_grad, x.tolist()
    return [shown(v) for v in x] if isinstance(x, (tuple, list)) else (type(x).__name__, x)


def saved(t: Any, program: str, names: list[str]) -> Any:
    a = (t.arange(12.0).reshape(3, 4) / 6).requires_grad_()
    c = t.ones(1, 1, 4, 4, requires_grad=True)
    found = {"torch": t, "F": t.nn.functional, "a": a, "c": c, "i": t.tensor([0, 1])}
    node = eval(program, found).grad_fn
    return [shown(getattr(node, f"_saved_{name}")) for name in names]


@pytest.mark.parametrize("line", SAVED.strip().splitlines())
def test_a_node_shows_what_it_saved(line: str) -> None:
    program, names = line.split(" | ")
    assert saved(rushlight, program, names.split()) == saved(reference, program, names.split())


def words(call: Any, *phrases: str) -> list[bool]:
    try:
        call()
    except RuntimeError as error:
        return [phrase in str(error) for phrase in phrases]
    return []


def test_saved_indices_one_by_one() -> None:
    def told(t: Any) -> Any:
        same, a = (lambda x: x), t.ones(2, 2, requires_grad=True)
        y = a[:, t.tensor([0, 1])]
        raw = y.grad_fn._raw_saved_indices
        raw[1].register_hooks(same, same)
        found = [isinstance(r, t._C._autograd.SavedTensor) for r in raw]
        refused = words(lambda: raw[0].register_hooks(same, same), "None is forbidden")
        twice = words(lambda: raw[1].register_hooks(same, same), "already been set")
        product = a * a
        (y.sum() + product.sum()).backward()
        late = words(lambda: product.grad_fn._raw_saved_self.register_hooks(same, same), "after it has been freed")
        gone = words(lambda: y.grad_fn._raw_saved_indices, "after they have already been freed")
        return found, refused, twice, late, gone, a.grad.tolist()

    assert told(rushlight) == told(reference)


def test_hooks_on_saved_tensors_without_a_context() -> None:
    def told(t: Any) -> Any:
        inner, a = t._C._autograd, t.ones(2, requires_grad=True)
        inner._push_saved_tensors_default_hooks(lambda x: x * 3, lambda x: x)
        y = a * a
        pairs = [inner._top_saved_tensors_default_hooks(False) is None]
        inner._pop_saved_tensors_default_hooks()
        pairs.append(inner._top_saved_tensors_default_hooks(False) is None)
        y.sum().backward()
        with t.autograd.graph.disable_saved_tensors_hooks("not now"):
            message = inner._saved_tensors_hooks_get_disabled_error_message()
            enabled = inner._saved_tensors_hooks_is_enabled()
        inner._unsafe_set_version_counter((a,), (7,))
        kept = inner._get_current_graph_task_keep_graph()
        return pairs, a.grad.tolist(), message, enabled, inner._saved_tensors_hooks_is_enabled(), a._version, kept

    assert told(rushlight) == told(reference)
