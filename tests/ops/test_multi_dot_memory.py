"""multi_dot holds nothing when it has returned."""

import gc
import weakref

import rushlight as torch


def test_operands_are_freed_without_the_cycle_collector() -> None:
    gc.collect()
    gc.disable()
    try:
        matrices = [torch.ones(2, 3), torch.ones(3, 4), torch.ones(4, 2)]
        refs = [weakref.ref(m) for m in matrices]
        product = torch.linalg.multi_dot(matrices)
        del matrices
        assert [ref() for ref in refs] == [None] * 3
    finally:
        gc.enable()
    assert product.tolist() == [[12.0, 12.0], [12.0, 12.0]]
