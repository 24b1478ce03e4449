"""What packages that quantize import: operators whose results are wider than their operands, dtypes of few bits, and more names."""

import pytest

import rushlight as torch
from rushlight._dynamo.utils import disable_cache_limit
from rushlight.compat import aliases
from rushlight.compat.rooms._higher_order_ops.inline_asm_elementwise import inline_asm_elementwise
from rushlight.compat.rooms._higher_order_ops.out_dtype import out_dtype
from rushlight.compat.rooms._inductor.decomposition import decompositions, register_decomposition
from rushlight.compat.rooms.private._library.infer_schema import infer_schema
from rushlight.jit._state import _enabled

aten = torch.ops.aten


@pytest.mark.parametrize(
    ("op", "kind", "args", "wanted"),
    [
        (aten.mm.default, torch.int32, (torch.full((2, 3), 100).to(torch.int8), torch.full((3, 1), 100).to(torch.int8)), 30000),
        (aten.linear.default, torch.int32, (torch.full((2, 3), 100).to(torch.int8), torch.full((1, 3), 100).to(torch.int8)), 30000),
        (aten.mul.Tensor, torch.int32, (torch.full((2,), 2.9), torch.full((2,), 1.5)), 4),
        (aten.mul.Scalar, torch.int32, (torch.full((2,), 100).to(torch.int8), 3), 300),
        (aten.mm.default, torch.int8, (torch.full((2, 3), 100).to(torch.int8), torch.full((3, 1), 100).to(torch.int8)), 48),
    ],
)  # fmt: skip
def test_operands_have_room_for_the_result(op, kind, args, wanted) -> None:
    found = out_dtype(op, kind, *args)
    assert found.dtype is kind and set(found.flatten().tolist()) == {wanted}


def test_operators_without_wider_results_are_refused() -> None:
    with pytest.raises(ValueError, match="only allows the following operators"):
        out_dtype(aten.add.Tensor, torch.int32, torch.ones(1), torch.ones(1))
    with pytest.raises(ValueError, match="must be an OpOverload"):
        out_dtype(torch.mm, torch.int32, torch.ones(1, 1), torch.ones(1, 1))


def test_dtypes_of_few_bits_are_names() -> None:
    kinds = [getattr(torch, f"{kind}{bits}") for kind in ("int", "uint") for bits in range(1, 8)]
    assert len(dict.fromkeys(kinds, 0)) == 14 and repr(torch.uint4) == "torch.uint4" and torch.bits16.itemsize == 2
    with pytest.raises(NotImplementedError, match=r"torch\.int4 is there by name alone"):
        torch.zeros(2, dtype=torch.int4)
    with pytest.raises(TypeError, match="requires an integer input type"):
        torch.iinfo(torch.uint2)


def test_operators_between_processes_are_keys_of_tables() -> None:
    wait = torch.ops._c10d_functional.wait_tensor
    assert {wait.default: 1}[torch.ops._c10d_functional.wait_tensor.default] == 1
    with pytest.raises(NotImplementedError, match="known by name alone"):
        wait(torch.ones(1))
    with pytest.raises(AttributeError, match="nonesuch"):
        _ = torch.ops.c10d.nonesuch


def test_operators_of_programs_and_of_the_library_are_of_the_same_classes() -> None:
    with torch.library._scoped_library("few_bits", "DEF") as library:
        library.define("same(Tensor x) -> Tensor")
        ours = torch.ops.few_bits.same
        for op in (ours, aten.sin):
            assert isinstance(op, torch._ops.OpOverloadPacket) and isinstance(op.default, torch._ops.OpOverload)


def test_the_rest_answers() -> None:
    @register_decomposition([aten.sin])
    def rule(x):
        return x

    assert decompositions.pop(aten.sin) is rule
    assert infer_schema is torch.library.infer_schema and aliases.real_name("torch._library.infer_schema")
    assert _enabled and torch.cuda._lazy_call(len) is None and torch._C.ScriptObject
    assert torch.sparse.SparseSemiStructuredTensor._DEFAULT_ALG_ID == 0 and torch._C.Tag is torch.Tag
    assert torch._C._cpu._is_avx2_supported() in (True, False) and torch.serialization.pickle.dumps
    assert torch.nn.functional.ScalingType.RowWise.value == 1 and torch.nn.functional.SwizzleType.NO_SWIZZLE.value == 0
    with pytest.raises(NotImplementedError, match="_scaled_mm is here"):
        torch.nn.functional.scaled_grouped_mm()
    with pytest.raises(RuntimeError, match="CUDA"), disable_cache_limit():
        inline_asm_elementwise(asm_str="", constraints="")
