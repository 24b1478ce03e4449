"""Modules that programs import for a name or two: of scripted programs, of accelerators, of CUDA where there is none."""

import importlib
from collections.abc import Callable
from typing import Any

import pytest
from tests.parity.refusing import refused

import rushlight
from rushlight.absent import walls

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]


def tasks(t: Any) -> Any:
    def task(x: Any, y: float = 1) -> Any:
        if y < 0:
            raise ValueError("negative")
        return x + y

    future = t.jit.fork(task, t.ones(2), y=3)
    return (future.done(), t.jit.wait(future).tolist(), future.value().tolist(), t.jit._wait(t.jit._fork(task, 1)), t.wait(t.fork(task, 1)),
            refused(lambda: t.jit.fork(task, 1, y=-1)))  # fmt: skip


def types_within(t: Any) -> Any:
    asked: list[Any] = [([1, 2], list[int]), ([1, "a"], list[int]), ({"a": 1}, dict[str, int]), ({"a": 1}, dict[int, int]),
                        (None, int | None), ("a", int | None), ((1, "a"), tuple[int, str]), ((1,), tuple[int, str]),
                        ([], list[int]), ([1], list), (1, int), (1, (float, int)), ([[1], ["a"]], list[list[int]])]  # fmt: skip
    return [refused(lambda o=o, k=k: t.jit.isinstance(o, k)) for o, k in asked]


def fusion(t: Any) -> Any:
    before = t.jit.onednn_fusion_enabled()
    t.jit.enable_onednn_fusion(True)
    with t.jit.strict_fusion(), t.jit.optimized_execution(False):
        seen = t.jit.onednn_fusion_enabled()
    t.jit.enable_onednn_fusion(before)
    return before, seen, len(t.jit.set_fusion_strategy([("STATIC", 2), ("DYNAMIC", 10)]))


def accelerator(t: Any) -> Any:
    memory = importlib.import_module(f"{t.__name__}.accelerator.memory")
    with t.accelerator.device_index(None):
        pass
    names = [name for name in memory.__all__ if "memory" in name or "cache" in name]
    return (names, [refused(getattr(memory, name)) for name in names], [hasattr(t.accelerator, name) for name in names],
            refused(lambda: t.accelerator.device_index(0).__enter__()), refused(lambda: t.accelerator.get_device_capability()))  # fmt: skip


def rooms_of_cuda(t: Any) -> Any:
    names = ("comm.broadcast", "graphs.CUDAGraph", "nccl.all_reduce", "nccl.SUM", "amp.autocast_mode.autocast", "amp.grad_scaler.GradScaler",
             "amp.common.amp_definitely_not_available", "tunable.is_enabled", "sparse.FloatTensor")  # fmt: skip
    found = [walls.imported(f"{t.__name__}.cuda.{name.rpartition('.')[0]}") for name in names]
    return ([hasattr(room, name.rpartition(".")[2]) for room, name in zip(found, names, strict=True)], t.cuda.nccl.is_available([]),
            t.cuda.amp.common.amp_definitely_not_available(), refused(lambda: t.cuda.tunable.is_enabled()) is True)  # fmt: skip


def modes_of_a_thread(t: Any) -> Any:
    found = []
    with t.overrides.BaseTorchFunctionMode() as outer, t.overrides.BaseTorchFunctionMode() as inner:
        found += [t._C._len_torch_function_stack(), t._C._get_function_stack_at(0) is outer]
        found += [
            t.overrides._get_current_function_mode() is inner,
            len(t.overrides._get_current_function_mode_stack()),
        ]
    return [*found, t._C._len_torch_function_stack(), t.overrides._get_current_function_mode()]


def libraries_of_a_block(t: Any) -> Any:
    with t.library._scoped_library("for_a_while", "FRAGMENT") as library:
        library.define("twice(Tensor x) -> Tensor")
        library.impl("twice", lambda x: x * 2, "CompositeImplicitAutograd")
        within = t.ops.for_a_while.twice(t.ones(2)).tolist()
    return within, refused(lambda: t.ops.for_a_while.twice(t.ones(2)))


def words_of_times(t: Any) -> Any:
    text = importlib.import_module(f"{t.__name__}.autograd.profiler_util")._format_time
    return [text(n) for n in (0, 1.5, 999, 1000, 12345.678, 1e6)]


def kinds_of_devices(t: Any) -> Any:
    kind = importlib.import_module(f"{t.__name__}.utils.checkpoint")._infer_device_type
    return kind(t.ones(1)), kind(1, [t.ones(1, device="meta")])


def references_by_value(t: Any) -> Any:
    weak = importlib.import_module(f"{t.__name__}.utils.weak")

    class Key:
        def __init__(self, value: int) -> None:
            self.value = value

        def __hash__(self) -> int:
            return hash(self.value)

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Key) and self.value == other.value

    one, same, other = Key(1), Key(1), Key(2)
    held = weak.WeakIdKeyDictionary({one: "a", other: "b"}, ref_type=weak._WeakHashRef)
    found = [held[same], same in held, len(held), weak._WeakHashRef(one) == weak._WeakHashRef(same)]
    del one, other
    return [*found, len(held)]


CASES = [
    modes_of_a_thread,
    libraries_of_a_block,
    words_of_times,
    kinds_of_devices,
    references_by_value,
    tasks,
    types_within,
    fusion,
    accelerator,
    rooms_of_cuda,
]


if torch.version.cuda is not None:  # a PyTorch that is built for CUDA answers in its own way without a device, too
    CASES = [case for case in CASES if case not in (accelerator, rooms_of_cuda)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_small_modules_answer_as_pytorchs(case: Callable[[Any], Any]) -> None:
    assert case(rushlight) == case(torch)


def test_memory_of_cuda_has_what_torch_cuda_has() -> None:
    memory = rushlight.cuda.memory
    assert (
        memory.memory_cached() == 0 and memory.memory_stats_as_nested_dict() == {} and not hasattr(memory, "nonsense")
    )
    assert issubclass(memory.MemPool, object)
