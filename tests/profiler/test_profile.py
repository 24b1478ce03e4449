"""torch.autograd.profiler.profile: what it notes, and how it sums up."""

import gc
import json
import threading
import time
import weakref
from typing import Any

import pytest

import rushlight as torch
from rushlight.autograd import profiler
from rushlight.basics.state import modes, special


def names(prof: profiler.profile) -> list[str]:
    return [event.name for event in prof.function_events]


def event(prof: profiler.profile, name: str) -> profiler.FunctionEvent:
    return next(e for e in prof.function_events if e.name == name)


@pytest.fixture(autouse=True)
def nothing_remains():
    """However a test ends, nobody observes afterwards."""
    yield
    assert special.observing == 0 and special.everywhere == () and modes.observers == ()


def square() -> profiler.profile:
    x = torch.ones(2, 3, requires_grad=True)
    with profiler.profile() as prof:
        (x * x).sum().backward()
    return prof


def test_operators_and_nodes_are_noted_in_the_order_in_which_they_began() -> None:
    node = "autograd::engine::evaluate_function: "
    assert names(square()) == [
        "aten::mul", "aten::sum", "torch::autograd::GraphRoot",
        f"{node}SumBackward0", "SumBackward0", f"{node}MulBackward0", "MulBackward0",
        f"{node}torch::autograd::AccumulateGrad", "torch::autograd::AccumulateGrad",
    ]  # fmt: skip


def test_forward_and_backward_share_the_sequence_number() -> None:
    prof = square()
    for operator, node in (("aten::mul", "MulBackward0"), ("aten::sum", "SumBackward0")):
        assert event(prof, operator).sequence_nr == event(prof, node).sequence_nr >= 0
    assert event(prof, "MulBackward0").fwd_thread == event(prof, "aten::mul").thread == 1


def test_times_nest() -> None:
    with profiler.profile() as prof:
        with profiler.record_function("outer"):
            with profiler.record_function("inner"):
                torch.ones(2) * 2
            time.sleep(0.01)
    outer, inner, mul = (event(prof, name) for name in ("outer", "inner", "aten::mul"))
    assert outer.cpu_children == [inner] and inner.cpu_parent is outer and mul.cpu_parent is inner
    assert outer.cpu_time_total >= 10_000 > inner.cpu_time_total >= mul.cpu_time_total > 0
    assert outer.self_cpu_time_total == pytest.approx(outer.cpu_time_total - inner.cpu_time_total)
    assert prof.self_cpu_time_total == pytest.approx(outer.cpu_time_total)


def test_record_function_decorates_and_carries_its_arguments() -> None:
    @profiler.record_function("named", "42")
    def double(x: torch.Tensor) -> torch.Tensor:
        """Twice."""
        return x * 2 if x.numel() < 4 else double(x[:2])

    with profiler.profile() as prof:
        double(torch.ones(5))
    marks = [e for e in prof.function_events if e.name == "named"]
    assert double.__name__ == "double" and len(marks) == 2 and marks[1].cpu_parent is marks[0]
    assert marks[0].kwinputs == {"args": "42"} and marks[0].is_user_annotation and marks[0].scope == 7


def test_record_function_alone_does_nothing() -> None:
    with torch.profiler.record_function("nobody listens"):
        assert (torch.ones(2) * 2).sum() == 4


def test_input_shapes() -> None:
    x = torch.ones(2, 3)
    with profiler.profile(record_shapes=True) as prof:
        torch.mm(x, x.t())
        torch.cat([x, x])
        x * 2
        x + x
        x[:1] * 2
    assert event(prof, "aten::mm").input_shapes == [[2, 3], [3, 2]]
    assert event(prof, "aten::cat").input_shapes == [[[2, 3], [2, 3]], []]
    assert event(prof, "aten::mul").input_shapes == [[2, 3], []]
    assert event(prof, "aten::mul").concrete_inputs == [None, 2]
    assert event(prof, "aten::cat").concrete_inputs == [None, 0]
    grouped = prof.key_averages(group_by_input_shape=True)
    assert sorted(str(e.input_shapes) for e in grouped if e.key == "aten::mul") == ["[[1, 3], []]", "[[2, 3], []]"]
    assert [e.count for e in prof.key_averages() if e.key == "aten::mul"] == [2]


def test_averages_and_totals() -> None:
    x = torch.ones(3, requires_grad=True)
    with profiler.profile() as prof:
        for _ in range(10):
            x.exp().sum().backward()
    exp = next(e for e in prof.key_averages() if e.key == "aten::exp")
    single = [e for e in prof.function_events if e.name == "aten::exp"]
    assert exp.count == len(single) == 10
    assert exp.cpu_time_total == pytest.approx(sum(e.cpu_time_total for e in single))
    assert exp.cpu_time == pytest.approx(exp.cpu_time_total / 10)
    total = prof.total_average()
    assert total.key == "Total" and total.count == len(prof.function_events)
    assert total.self_cpu_time_total == pytest.approx(prof.self_cpu_time_total)
    assert repr(total).startswith("<FunctionEventAvg key=Total self_cpu_time=")
    with pytest.raises(AssertionError, match="different keys"):
        exp.add(single[0].cpu_parent or event(prof, "aten::sum"))


def test_flops() -> None:
    a, b = torch.ones(5, 7), torch.ones(7, 11)
    images, kernel = torch.ones(2, 4, 8, 8), torch.ones(6, 2, 3, 3)
    with profiler.profile(with_flops=True) as prof:
        a @ b
        torch.bmm(torch.ones(3, 5, 7), torch.ones(3, 7, 2))
        torch.addmm(torch.ones(11), a, b)
        torch.nn.functional.linear(a, torch.ones(4, 7))
        torch.nn.functional.conv2d(images, kernel, groups=2)
        a * a
        a.exp()
    flops = {e.name: e.flops for e in prof.function_events}
    assert flops["aten::mm"] == 2 * 5 * 7 * 11 == flops["aten::addmm"]
    assert flops["aten::bmm"] == 3 * 2 * 5 * 7 * 2
    assert flops["aten::linear"] == 2 * 5 * 7 * 4
    assert flops["aten::convolution"] == 2 * (2 * 6 * 6 * 6) * (2 * 3 * 3)
    assert flops["aten::mul"] == 35 and flops["aten::exp"] is None
    assert "FLOPs" in prof.key_averages().table()


def test_stacks_name_the_users_lines_and_nodes_that_of_their_operator(tmp_path) -> None:
    x = torch.ones(3, requires_grad=True)
    with profiler.profile(with_stack=True) as prof:
        y = x.exp()  # the line
        y.sum().backward()
    line = event(prof, "aten::exp").stack[0]
    assert line.startswith(__file__) and line.endswith(
        test_stacks_name_the_users_lines_and_nodes_that_of_their_operator.__name__
    )
    assert event(prof, "ExpBackward0").stack[0] == line
    assert all("rushlight/ops" not in entry for e in prof.function_events for entry in e.stack)
    by_line = prof.key_averages(group_by_stack_n=1)
    assert "Source Location" in by_line.table() and next(e for e in by_line if e.key == "aten::exp").stack == [line]
    prof.export_stacks(tmp_path / "stacks")
    found = [text.rsplit(" ", 1) for text in (tmp_path / "stacks").read_text().splitlines()]
    assert found and all(path.count(";") and int(value) > 0 for path, value in found)
    with pytest.raises(ValueError, match="metric should be one of"):
        prof.export_stacks(tmp_path / "x", "weight")
    with pytest.raises(RuntimeError, match="with_stack"):
        square().export_stacks(tmp_path / "x")


def test_modules_around_an_operator() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Sequential(torch.nn.ReLU()))
    with profiler.profile(with_modules=True) as prof:
        model(torch.ones(1, 3))
        torch.ones(2) * 2
    assert event(prof, "aten::linear").module_hierarchy == "Sequential.Linear"
    assert event(prof, "aten::relu").module_hierarchy == "Sequential.Sequential.ReLU"
    assert event(prof, "aten::mul").module_hierarchy == ""


def test_memory_made_and_given_back() -> None:
    x = torch.ones(256, 1024)  # a mebibyte
    with profiler.profile(profile_memory=True) as prof:
        with profiler.record_function("kept"):
            y = x * 2
            z = y[:10]
        with profiler.record_function("dropped"):
            x.exp()
        del y
        del z
    assert event(prof, "aten::mul").cpu_memory_usage == 1 << 20
    assert event(prof, "aten::slice").cpu_memory_usage == 0  # a view
    assert event(prof, "kept").cpu_memory_usage == 1 << 20 and event(prof, "kept").self_cpu_memory_usage == 0
    assert event(prof, "dropped").cpu_memory_usage == 0 and event(prof, "dropped").self_cpu_memory_usage == -(1 << 20)
    assert event(prof, "[memory]").cpu_memory_usage == -(1 << 20)  # after both blocks
    assert prof.total_average().self_cpu_memory_usage == 0
    assert "Self CPU Mem" in prof.key_averages().table(sort_by="self_cpu_memory_usage")


def test_memory_of_a_backward() -> None:
    x = torch.ones(1 << 18, requires_grad=True)
    with profiler.profile(profile_memory=True) as prof:
        x.exp().sum().backward()
    assert event(prof, "ExpBackward0").cpu_memory_usage == 1 << 20
    assert prof.total_average().self_cpu_memory_usage == 1 << 20  # the gradient is what is left
    assert x.grad.nbytes == 1 << 20


def test_memory_tracking_keeps_nothing_alive() -> None:
    x = torch.ones(8)
    with profiler.profile(profile_memory=True, record_shapes=True, with_stack=True) as prof:
        y = (x * 2).exp()
        array = weakref.ref(y._array)
        del y
        assert array() is None
    assert len(prof.function_events) > 2


def test_a_profile_keeps_no_graph_alive() -> None:
    x = torch.ones(8, requires_grad=True)
    with profiler.profile() as prof:
        y = x.exp()
        node = weakref.ref(y.grad_fn)
        y.sum().backward()
        del y
        assert node() is None
    assert "ExpBackward0" in names(prof)


def test_tables() -> None:
    prof = square()
    lines = prof.key_averages().table(sort_by="self_cpu_time_total").splitlines()
    assert lines[1].split() == "Name Self CPU % Self CPU CPU total % CPU total CPU time avg # of Calls".split()
    assert lines[0] == lines[2] == lines[-2] and set(lines[0]) == {"-", " "}
    assert lines[-1].startswith("Self CPU time total: ")
    assert len({len(line) for line in lines[:-1]}) == 1
    assert len(prof.key_averages().table(row_limit=2).splitlines()) == 4 + 2 + 1
    assert len(prof.key_averages().table(row_limit=-1).splitlines()) == len(prof.key_averages()) + 5
    counts = [e.count for e in prof.key_averages()]
    assert prof.key_averages().table(sort_by="count") and max(counts) == 1
    assert prof.table(header="of a square").splitlines()[1] == "of a square"
    assert prof.key_averages().table(time_unit="s").rstrip().endswith("s")
    assert "..." in prof.key_averages().table(max_name_column_width=10)
    assert str(prof) == prof.table() == str(prof.function_events)
    with pytest.raises(AttributeError, match=r"no attribute 'weight'.*'cpu_time_total'"):
        prof.table(sort_by="weight")
    with pytest.raises(ValueError, match="time_unit"):
        prof.key_averages().table(time_unit="h")


def test_rows_are_sorted() -> None:
    x = torch.ones(2)
    with profiler.profile() as prof:
        for _ in range(3):
            x.exp()
        x.sin()
    by_count = [line.split()[0] for line in prof.key_averages().table(sort_by="count").splitlines()[3:-2]]
    assert by_count == ["aten::exp", "aten::sin"]


def test_top_level_events_only() -> None:
    with profiler.profile() as prof:
        with profiler.record_function("outer"):
            torch.ones(2) * 2
    table = prof.table(top_level_events_only=True)
    assert "only display top-level" in table and "outer" in table and "aten::mul" not in table


def test_chrome_trace(tmp_path) -> None:
    x = torch.ones(3, requires_grad=True)
    with profiler.profile(record_shapes=True, profile_memory=True, with_stack=True) as prof:
        with profiler.record_function("step"):
            x.exp().sum().backward()
    prof.export_chrome_trace(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text())
    events = trace["traceEvents"]
    assert {e["ph"] for e in events} == {"M", "X", "s", "f", "i"}
    assert [e["args"]["name"] for e in events if e["name"] == "thread_name"] == ["MainThread"]
    complete = {e["name"]: e for e in events if e["ph"] == "X"}
    assert complete["step"]["cat"] == "user_annotation" and complete["aten::exp"]["cat"] == "cpu_op"
    assert complete["aten::exp"]["args"]["Input Dims"] == [[3]] and complete["aten::exp"]["dur"] > 0
    starts = {e["id"]: e for e in events if e["ph"] == "s"}
    ends = {e["id"]: e for e in events if e["ph"] == "f"}
    assert starts.keys() == ends.keys() and len(starts) == 2
    arrows = {(starts[i]["ts"], ends[i]["ts"]) for i in starts}
    node = "autograd::engine::evaluate_function: "
    for operator, run in (("aten::exp", f"{node}ExpBackward0"), ("aten::sum", f"{node}SumBackward0")):
        assert (complete[operator]["ts"], complete[run]["ts"]) in arrows
    memory = [e["args"]["Total Allocated"] for e in events if e["name"] == "[memory]"]
    assert memory[0] == 12 and memory[-1] == 12  # the result of exp at first, the gradient at last


def test_compressed_trace(tmp_path) -> None:
    import gzip

    square().export_chrome_trace(str(tmp_path / "trace.json.gz"))
    with gzip.open(tmp_path / "trace.json.gz") as file:
        assert json.load(file)["traceEvents"]


def test_only_the_thread_that_profiles_is_observed_unless_all_are() -> None:
    def work() -> None:
        torch.ones(2).exp()

    def run() -> None:
        worker = threading.Thread(target=work, name="worker")
        worker.start()
        worker.join()
        torch.ones(2).sin()

    with profiler.profile() as prof:
        run()
    assert names(prof) == ["aten::sin"]
    config = profiler._ExperimentalConfig(profile_all_threads=True)
    with profiler.profile(experimental_config=config) as prof:
        run()
    assert [(e.name, e.thread) for e in prof.function_events] == [("aten::exp", 1), ("aten::sin", 2)]
    assert prof.function_events._threads[1] == "worker"


def test_threads_profile_side_by_side() -> None:
    found: dict[int, list[str]] = {}

    def work(k: int) -> None:
        x = torch.ones(3, requires_grad=True)
        with profiler.profile() as prof:
            for _ in range(50):
                (x.exp() if k % 2 else x.sin()).sum().backward()
        found[k] = names(prof)

    workers = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for k, seen in found.items():
        mine, other = ("aten::exp", "aten::sin") if k % 2 else ("aten::sin", "aten::exp")
        assert seen.count(mine) == 50 and seen.count("aten::sum") == 50 and other not in seen


def test_profiles_nest() -> None:
    x = torch.ones(2)
    with profiler.profile() as outer:
        x.exp()
        with profiler.profile() as inner:
            x.sin()
        x.cos()
    assert names(outer) == ["aten::exp", "aten::sin", "aten::cos"] and names(inner) == ["aten::sin"]


def test_an_exception_leaves_nothing_behind() -> None:
    x = torch.ones(2, 3, requires_grad=True)
    with pytest.raises(RuntimeError, match="must match"), profiler.profile() as prof:
        with profiler.record_function("failing"):
            x + torch.ones(4)
    assert names(prof) == ["failing", "aten::add"]
    y = (x * 2).sum()
    y.register_hook(lambda g: 1 / 0)
    with pytest.raises(ZeroDivisionError), profiler.profile() as prof:
        y.backward()
    assert "autograd::engine::evaluate_function: SumBackward0" in names(prof)


def test_hooks_count_to_the_evaluation_of_their_node() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x.exp()
    y.register_hook(lambda g: time.sleep(0.01))
    with profiler.profile() as prof:
        y.sum().backward()
    node = event(prof, "ExpBackward0")
    assert node.cpu_time_total < 10_000 < node.cpu_parent.self_cpu_time_total


def test_custom_functions() -> None:
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = torch.ones(2, requires_grad=True)
    with profiler.profile() as prof:
        Twice.apply(x).sum().backward()
    assert event(prof, "aten::mul").cpu_parent is event(prof, "Twice")
    assert event(prof, "Twice").sequence_nr == event(prof, "TwiceBackward").sequence_nr >= 0


def test_second_order() -> None:
    x = torch.ones(2, requires_grad=True)
    with profiler.profile() as prof:
        (g,) = torch.autograd.grad(x.sin().sum(), x, create_graph=True)
        g.sum().backward()
    inside = [e.name for e in prof.function_events if e.cpu_parent is event(prof, "SinBackward0")]
    assert "aten::cos" in inside and "CosBackward0" in names(prof)
    assert "torch::autograd::AccumulateGrad" in names(prof)


def test_results_are_the_same_while_profiling() -> None:
    def step(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        w = torch.linspace(0, 1, 12).reshape(3, 4).requires_grad_()
        y = torch.cat([x @ w, x[:, :1]], 1).softmax(1)
        y = torch.stack([y, y.flip(0)]).amax(0)
        z = y.clone()
        z[0] = 0
        z.mul_(2)
        loss = torch.nn.functional.cross_entropy(z, torch.tensor([1, 0]))
        loss.backward()
        return loss.detach(), w.grad

    x = torch.tensor([[1.0, 2, 3], [4, 5, 6]])
    plain = step(x)
    for settings in ({}, {"record_shapes": True, "profile_memory": True, "with_stack": True, "with_modules": True}):
        with profiler.profile(**settings):
            seen = step(x)
        assert all(torch.equal(a, b) for a, b in zip(plain, seen))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64, torch.complex64, torch.int64])
def test_every_dtype_is_noted_once(dtype: torch.dtype) -> None:
    x = torch.ones(3, dtype=dtype)
    with profiler.profile() as prof:
        y = x * x
        with torch.no_grad():
            x + x
    assert names(prof) == ["aten::mul", "aten::add"] and y.dtype == dtype


def test_arguments_and_states() -> None:
    with profiler.profile(enabled=False) as nothing:
        torch.ones(2).exp()
    assert nothing is None
    prof = profiler.profile()
    assert str(prof) == "<unfinished torch.autograd.profile>"
    for ask in (prof.key_averages, prof.total_average, lambda: prof.function_events, lambda: prof.self_cpu_time_total):
        with pytest.raises(RuntimeError, match="finish"):
            ask()
    with prof, pytest.raises(RuntimeError, match="not reentrant"):
        prof.__enter__()
    with pytest.raises(RuntimeError, match="not reentrant"):
        prof.__enter__()
    with pytest.raises(AssertionError, match="use_kineto"):
        profiler.profile(use_cpu=False)
    with pytest.raises(AssertionError, match="no device"):
        profiler.profile(use_cpu=False, use_kineto=True)
    with profiler.profile(use_kineto=True):
        pass
    with pytest.warns(UserWarning, match="XPU is not available"):
        profiler.profile(use_device="xpu")
    with pytest.warns(UserWarning, match="MTIA is not available"):
        profiler.profile(use_mtia=True)
    with pytest.warns(UserWarning, match="not a valid device option"):
        profiler.profile(use_device="bad")
    with pytest.warns(FutureWarning, match="use_cuda"), pytest.warns(UserWarning, match="CUDA is not available"):
        profiler.profile(use_cuda=True)


def test_collection_stops_and_goes_on() -> None:
    x = torch.ones(2)
    with profiler.profile() as prof:
        x.exp()
        prof.toggle_collection_dynamic(False)
        x.sin()
        prof.toggle_collection_dynamic(True)
        x.cos()
    assert names(prof) == ["aten::exp", "aten::cos"]


def test_an_event_shows_itself() -> None:
    shown = repr(event(square(), "aten::mul"))
    assert shown.startswith("<FunctionEvent id=0 name=aten::mul device_type=DeviceType.CPU thread=1 start_us=")


def test_no_garbage_for_the_cycle_collector() -> None:
    gc.collect()
    gc.disable()
    try:
        x = torch.ones(3, requires_grad=True)
        with profiler.profile(profile_memory=True):
            x.exp().sum().backward()
        x.grad = None
        kept = weakref.ref(x)
        del x
        assert kept() is None
    finally:
        gc.enable()


def test_no_kineto_is_needed() -> None:
    assert not profiler.kineto_available()
    assert torch.profiler.supported_activities() == {torch.profiler.ProfilerActivity.CPU}
    assert torch.autograd.profiler_util.FunctionEvent is profiler.FunctionEvent


def test_all_kinds_of_calls_are_seen_from_every_thread() -> None:
    def work() -> None:
        x = torch.ones(4, 4)
        x.view(16)
        x[0]
        x.split(2)
        x.zero_()
        x[1] = 2
        torch.stack([x, x])

    config = profiler._ExperimentalConfig(profile_all_threads=True)
    with profiler.profile(experimental_config=config) as prof:
        worker = threading.Thread(target=work)
        worker.start()
        worker.join()
    seen = set(names(prof))
    assert {"aten::view", "aten::select", "aten::split", "aten::stack"} <= seen
    assert any(name.startswith("aten::fill") for name in seen) and any(name.startswith("aten::copy") for name in seen)


def test_steps_of_optimizers_and_random_numbers_are_events() -> None:
    layer = torch.nn.Linear(3, 2)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1, momentum=0.9)
    calls = []
    optimizer.register_step_pre_hook(lambda *args: calls.append("before"))
    optimizer.register_step_post_hook(lambda *args: calls.append("after"))
    with profiler.profile(profile_memory=True) as prof:
        noise = torch.randn(256, 1024)
        layer(torch.rand_like(torch.ones(1, 3))).sum().backward()
        optimizer.step()
    assert event(prof, "Optimizer.step#SGD.step").is_user_annotation and calls == ["before", "after"]
    assert event(prof, "aten::randn").cpu_memory_usage == noise.nbytes == 1 << 20
    assert "aten::rand_like" in names(prof)
    optimizer.step()
    assert calls == ["before", "after"] * 2


def everything() -> profiler.profile:
    return profiler.profile(record_shapes=True, profile_memory=True, with_stack=True, with_modules=True)


def test_under_function_transformations() -> None:
    x = torch.ones(3, 2)
    with everything() as prof:
        y = torch.vmap(torch.func.grad(lambda row: (row**2).sum()))(x)
        _, tangent = torch.func.jvp(torch.sin, (x,), (x,))
    assert y.tolist() == [[2, 2]] * 3 and tangent.shape == (3, 2)
    assert "aten::pow" in names(prof) and "aten::sin" in names(prof)


def test_what_a_custom_function_calls_its_attributes_does_not_matter() -> None:
    class Odd(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.saved = ctx.plan = ctx.seq = 3
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return ctx.saved_tensors[0]

    x = torch.ones(1 << 18, dtype=torch.bfloat16, requires_grad=True)
    with everything() as prof:
        Odd.apply(x).sum().backward()
    assert event(prof, "OddBackward").cpu_memory_usage == 0  # it gives what it kept
    assert event(prof, "Odd").cpu_memory_usage == event(prof, "aten::mul").cpu_memory_usage == 1 << 19


def test_clearing_gradients_and_fetching_batches_are_events() -> None:
    layer = torch.nn.Linear(1, 1)
    optimizer, loader = torch.optim.SGD(layer.parameters(), 0.1), torch.utils.data.DataLoader(range(2))
    with profiler.profile() as prof:
        for _ in loader:
            optimizer.zero_grad()
    counts = {each.key: each.count for each in prof.key_averages()}
    assert counts["Optimizer.zero_grad#SGD.zero_grad"] == 2
    assert counts["enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"] == 3  # the last one finds the end


def test_a_trace_says_what_time_was_recorded(tmp_path: Any) -> None:
    with profiler.profile(record_shapes=True) as prof:
        torch.cat([torch.ones(2), torch.ones(2)])
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    names = [each["name"] for each in events]
    assert {"PyTorch Profiler (0)", "Iteration Start: PyTorch Profiler", "Record Window End"} <= set(names)
    span = events[names.index("PyTorch Profiler (0)")]
    assert all(span["ts"] <= each["ts"] <= span["ts"] + span["dur"] for each in events if each["ph"] == "X")
    assert events[names.index("aten::cat")]["args"]["Concrete Inputs"] == ["", "0"]
