"""emit_nvtx and emit_itt, with packages that write down what they are told; load_nvprof, with a file made here."""

import re
import sqlite3
import sys
from types import ModuleType

import pytest

import rushlight as torch
from rushlight.autograd import profiler


@pytest.fixture
def nvtx(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the package nvtx was told: texts of ranges, and "pop"."""
    told: list[str] = []
    module = ModuleType("nvtx")
    module.push_range = told.append
    module.pop_range = lambda: told.append("pop")
    monkeypatch.setitem(sys.modules, "nvtx", module)
    return told


@pytest.fixture
def ittapi(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The same of the package ittapi."""
    told: list[str] = []
    module = ModuleType("ittapi")
    module.domain = lambda name: f"<{name}>"
    module.string_handle = lambda text: text
    module.task_begin = lambda domain, text: told.append(text)
    module.task_end = lambda domain: told.append("pop")
    monkeypatch.setitem(sys.modules, "ittapi", module)
    return told


def numbers(told: list[str], pattern: str) -> dict[str, int]:
    """{name: number} of the ranges whose text fits."""
    found = (re.match(rf"(.*), {pattern}=(-?\d+)", text) for text in told)
    return {match[1]: int(match[2]) for match in found if match}


def test_forward_and_backward_are_correlated(nvtx: list[str]) -> None:
    x = torch.ones(2, 3, requires_grad=True)
    with profiler.emit_nvtx():
        y = x.exp()
        y.sum().backward()
    forward, backward = numbers(nvtx, "seq"), numbers(nvtx, "stashed seq")
    assert forward["aten::exp"] == backward["ExpBackward0"] == y.grad_fn._sequence_nr()
    assert forward["aten::sum"] == backward["SumBackward0"] == forward["aten::exp"] + 1
    assert nvtx.count("pop") * 2 == len(nvtx)
    assert "torch::autograd::AccumulateGrad" in nvtx


def test_double_backward_is_correlated(nvtx: list[str]) -> None:
    x = torch.ones(2, requires_grad=True)
    with profiler.emit_nvtx():
        (g,) = torch.autograd.grad(x.sin().sum(), x, create_graph=True)
        inside = numbers(nvtx, "seq")  # aten::mul and aten::cos ran in the backward
        del nvtx[:]
        g.sum().backward()
    again = numbers(nvtx, "stashed seq")
    assert inside["aten::mul"] == again["MulBackward0"] > inside["aten::sin"]
    assert inside["aten::cos"] == again["CosBackward0"]


def test_operators_of_a_plain_backward_have_no_number(nvtx: list[str]) -> None:
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g + g

    x = torch.ones(2, requires_grad=True)
    with profiler.emit_nvtx():
        Twice.apply(x).sum().backward()
    assert "aten::add, seq=0" in nvtx
    assert numbers(nvtx, "seq")["Twice"] == numbers(nvtx, "stashed seq")["TwiceBackward"]


def test_sizes(nvtx: list[str]) -> None:
    with profiler.emit_nvtx(record_shapes=True):
        torch.ones(2, 3) * 2
    assert nvtx[0].endswith(", sizes = [[2, 3], []]")


def test_marks_are_ranges(nvtx: list[str]) -> None:
    with profiler.emit_nvtx(), profiler.record_function("mine"):
        pass
    assert nvtx == ["mine", "pop"]


def test_a_raising_operator_closes_its_range(nvtx: list[str]) -> None:
    with pytest.raises(RuntimeError), profiler.emit_nvtx():
        torch.ones(2) + torch.ones(3)
    assert len(nvtx) == 2 and nvtx[1] == "pop"


def test_itt(ittapi: list[str]) -> None:
    x = torch.ones(2, requires_grad=True)
    with profiler.emit_itt(record_shapes=True):
        x.exp().sum().backward()
    assert numbers(ittapi, "seq")["aten::exp"] == numbers(ittapi, "stashed seq")["ExpBackward0"]
    assert ittapi[0].endswith("sizes = [[2]]") and ittapi.count("pop") * 2 == len(ittapi)
    with torch.profiler.itt.range("step {}", 3):
        torch.profiler.itt.mark("here")
    assert ittapi[-4:] == ["step 3", "here", "pop", "pop"]


@pytest.mark.parametrize("emit, package", [(profiler.emit_nvtx, "nvtx"), (profiler.emit_itt, "ittapi")])
def test_without_the_package(emit: type, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=rf"pip install 'rushlight\[{package}\]"), emit():
        pass
    with emit(enabled=False) as nothing:
        assert nothing is None


def test_not_reentrant(nvtx: list[str]) -> None:
    emitter = profiler.emit_nvtx()
    with emitter, pytest.raises(RuntimeError, match="NVTX annotation context manager is not reentrant"):
        emitter.__enter__()


SCHEMA = """
CREATE TABLE StringTable (_id_ INTEGER PRIMARY KEY, value TEXT);
CREATE TABLE CUPTI_ACTIVITY_KIND_MARKER (id INTEGER, name INTEGER, timestamp INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (_id_ INTEGER, cbid INTEGER, start INTEGER, end INTEGER, correlationId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL (name INTEGER, start INTEGER, end INTEGER, correlationId INTEGER,
                                                    deviceId INTEGER);
INSERT INTO StringTable VALUES (1, 'aten::linear, seq=4'), (2, 'aten::addmm, seq=4'), (3, 'sgemm'), (4, 'memset');
INSERT INTO CUPTI_ACTIVITY_KIND_MARKER VALUES (7, 1, 1000), (8, 2, 2000), (8, 0, 6000), (7, 0, 9000);
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1, 211, 3000, 4000, 50), (2, 30, 4100, 4200, 51), (3, 13, 7000, 7100, 52);
INSERT INTO CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL VALUES (3, 10000, 14000, 50, 0), (4, 14000, 15000, 52, 0);
"""


def test_load_nvprof(tmp_path) -> None:
    path = tmp_path / "trace.nvprof"
    with sqlite3.connect(path) as connection:
        connection.executescript(SCHEMA)
    connection.close()
    events = profiler.load_nvprof(path)
    linear, addmm = events
    assert (linear.name, linear.time_range.start, linear.time_range.end) == ("aten::linear, seq=4", 0, 8)
    assert addmm.cpu_parent is linear and addmm.cpu_time_total == 4 and linear.self_cpu_time_total == 4
    assert [kernel.name for kernel in linear.kernels] == ["sgemm", "memset"]
    assert addmm.kernels == [("sgemm", 0, 4.0)]
    assert linear.cuda_time_total == 5 and addmm.self_device_time_total == 4 and linear.self_device_time_total == 1
    table = events.key_averages().table(sort_by="cuda_time_total")
    assert "CUDA total" in table and table.endswith("Self CUDA time total: 5.000us\n")
    events.export_chrome_trace(tmp_path / "trace.json")
    assert '"sgemm"' in (tmp_path / "trace.json").read_text()


def test_files_that_are_no_traces(tmp_path) -> None:
    with pytest.raises(FileNotFoundError, match="load_nvprof"):
        profiler.load_nvprof(tmp_path / "absent")
    (tmp_path / "text").write_text("not a database " * 100)
    with pytest.raises(ValueError, match="not a trace of nvprof"):
        profiler.load_nvprof(tmp_path / "text")
    sqlite3.connect(tmp_path / "empty").close()
    with pytest.raises(ValueError, match="not a trace of nvprof"):
        profiler.load_nvprof(tmp_path / "empty")


def test_the_cuda_profiler_needs_cuda() -> None:
    with pytest.raises(RuntimeError, match="there is no CUDA device"), torch.cuda.profiler.profile():
        pass
