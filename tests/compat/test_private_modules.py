"""Small modules of PyTorch's own that libraries import."""

import traceback

import pytest
from tests.processes import printed_as_torch

import rushlight
from rushlight.absent.reasons import why
from rushlight.compat.rooms.private import _linalg_utils
from rushlight.compat.rooms.private._device import DeviceContext, set_device
from rushlight.compat.rooms.private._ordered_set import OrderedSet
from rushlight.compat.rooms.private._traceback import (
    CapturedTraceback,
    format_traceback_short,
    report_compile_source_on_error,
)

PROGRAM = """
import torch, torch.quantization, torch.utils._triton
from torch import _VF
from torch._compile import _disable_dynamo
from torch._higher_order_ops.map import _fake_map
from torch._higher_order_ops.scan import _fake_scan, scan
from torch._higher_order_ops.schema import HopSchemaGenerator
from torch._higher_order_ops.while_loop import while_loop
from torch._linalg_utils import qform
from torch._lobpcg import lobpcg
from torch._lowrank import svd_lowrank
from torch.ao.nn.intrinsic import _FusedModule
from torch.nested._internal.nested_tensor import ViewNestedFromBuffer
from torch._vmap_internals import _vmap
from torch.quantization import QuantStub
from torch.utils._device import DeviceContext
from torch.utils._dtype_abbrs import dtype_abbrs
from torch.utils._import_utils import _check_module_exists, dill_available, import_dill
from torch.utils._mode_utils import all_same_mode, no_dispatch
from torch.utils._ordered_set import OrderedSet
from torch.utils._traceback import CapturedTraceback
assert scan is torch._higher_order_ops.scan and while_loop is torch.while_loop and lobpcg is torch.lobpcg
assert (import_dill() is None) is not dill_available() and not isinstance(torch.nn.Sequential(), _FusedModule)
assert ViewNestedFromBuffer.apply(torch.ones(3), torch.tensor([0, 1, 3])).is_nested
assert _VF.lstm is torch.lstm and not hasattr(_VF, "nonesuch") and not torch.utils._triton.has_triton()
assert QuantStub is torch.ao.quantization.QuantStub and QuantStub.__module__ == "torch.ao.quantization.stubs"
assert _vmap(torch.sum)(torch.ones(2, 3)).tolist() == [3, 3] and svd_lowrank is torch.svd_lowrank
assert dtype_abbrs[torch.bfloat16] == "bf16" and _check_module_exists("json") and not _check_module_exists("nonesuch.below")
assert _disable_dynamo(len) is len and _disable_dynamo(recursive=False)(len) is len and dill_available() in (True, False)
with no_dispatch():
    assert all_same_mode([1, 1]) and not all_same_mode([1, 2])
"""


def test_they_are_imported_as_torch():
    printed_as_torch(PROGRAM)


def test_sets_in_the_order_of_insertion():
    a = OrderedSet([3, 1, 3])
    assert list(a | OrderedSet([2, 1])) == [3, 1, 2] and len(a) == 2 and a == {1, 3}
    a.update([5], (4, 3))
    a.discard(3)
    assert list(a) == [1, 5, 4] and list(a.difference([5])) == [1, 4] and list(a.intersection((4, 1), [4])) == [4]
    assert list(a.union([0])) == [1, 5, 4, 0] and repr(a.copy()) == "OrderedSet([1, 5, 4])"


def test_tensors_are_made_where_the_context_says():
    with DeviceContext("meta") as context:
        assert rushlight.ones(2).is_meta and context.device.type == "meta"
    assert set_device("meta")(rushlight.zeros)(3).is_meta and not rushlight.ones(2).is_meta


@pytest.mark.parametrize("module", ["torch._nonesuch", "torch.utils._content_store", "torch._appdirs"])
def test_others_say_whose_they_are(module):
    assert (
        "PyTorch's own" in why(module)
        and "underscore" in why("torch.special", "_private")
        and why("torch.nonesuch") is None
    )


def test_the_calls_that_led_here_and_lines_of_code_made_of_text():
    def here():
        return CapturedTraceback.extract()

    found = here()
    assert found.summary()[-1].name == "here" and "in here" in found.format()[-1]
    assert CapturedTraceback.format_all([found, None]) == [found.format(), []]
    source = "def f(x):\n    y = x * 3\n    raise RuntimeError('no')\n"
    names = {"__compile_source__": source}
    exec(compile(source, "<string>", "exec"), names)
    with pytest.raises(RuntimeError) as error, report_compile_source_on_error():
        names["f"](1)
    assert "raise RuntimeError('no')" in "".join(traceback.format_exception(error.value))
    assert format_traceback_short(error.value.__traceback__).endswith(":3 in f")


def test_products_and_bases_of_matrices_or_the_identity():
    a, s = rushlight.tensor([[2.0, 1.0], [1.0, 3.0]]), rushlight.eye(2)
    assert _linalg_utils.matmul(None, a) is a and _linalg_utils.qform(a, s).equal(a)
    values, vectors = _linalg_utils.symeig(a, largest=True)
    assert values[0] > values[1] and rushlight.allclose(a @ vectors, vectors * values)
    q = _linalg_utils.basis(a)
    assert rushlight.allclose(q.mT @ q, s, atol=1e-6) and not _linalg_utils.is_sparse(a)
    assert _linalg_utils.get_floating_dtype(rushlight.ones(1, dtype=rushlight.int64)) is rushlight.float32


def test_tuples_are_lists_in_declarations() -> None:
    import typing

    from rushlight.compat.rooms.private._library.infer_schema import tuple_to_list

    assert (
        tuple_to_list(tuple[int, ...]) == tuple_to_list(tuple[int, int]) == list[int] and tuple_to_list(tuple) is list
    )
    assert typing.get_args(tuple_to_list(tuple[int, bool])) == (int | bool,)


def test_a_device_holds_within_generators_and_for_windows():
    @set_device("meta")
    def made():
        yield rushlight.ones(2)
        yield rushlight.signal.windows.hann(3)

    assert [t.device.type for t in made()] == ["meta", "meta"] and rushlight.ones(1).device.type == "cpu"
    with rushlight.device("meta"):
        for name in rushlight.signal.windows.__all__:
            more = {"general_cosine": {"a": [0.5]}}.get(name, {})
            assert getattr(rushlight.signal.windows, name)(4, **more).device.type == "meta"
