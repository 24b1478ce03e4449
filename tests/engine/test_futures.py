"""Futures: values that come later, from this thread or another, and what is done with them then."""

import copy
import pickle
import threading
from typing import Any

import pytest

import rushlight as torch
from rushlight.futures import Future, collect_all, wait_all


def test_a_value_is_set_once_and_runs_what_waits_for_it() -> None:
    future: Future[int] = Future()
    seen: list[int] = []
    later = future.then(lambda f: f.value() + 1)
    future.add_done_callback(lambda f: seen.append(f.value()))
    assert not future.done() and not later.done()
    with pytest.raises(RuntimeError, match="not done yet"):
        future.value()
    future.set_result(1)
    assert (future.wait(), later.wait(), seen, future.done()) == (1, 2, [1], True)
    assert future.then(lambda f: f.wait() * 10).value() == 10
    with pytest.raises(RuntimeError, match="only be marked completed once"):
        future.set_result(2)
    assert torch.Future is Future and torch.futures.Future is Future


def test_exceptions_are_raised_to_who_waits() -> None:
    future: Future[int] = Future()
    later = future.then(lambda f: f.wait())
    future.set_exception(ValueError("boo"))
    for asked in (future.wait, future.value):
        with pytest.raises(ValueError, match="boo"):
            asked()
    with pytest.raises(RuntimeError, match="when running the callback: ValueError: boo") as caught:
        later.wait()
    assert isinstance(caught.value.__cause__, ValueError)
    with pytest.raises(AssertionError, match="not an Exception"):
        Future().set_exception(3)  # type: ignore[arg-type]


def test_several_together() -> None:
    futures: list[Any] = [Future(), Future()]
    both = collect_all(futures)
    futures[1].set_result("b")
    assert not both.done()
    futures[0].set_result("a")
    assert both.wait() == futures and wait_all(futures) == ["a", "b"]
    assert wait_all([]) == []
    failed: Any = Future()
    failed.set_exception(ValueError("x"))
    with pytest.raises(ValueError, match="x"):
        wait_all([futures[0], failed])


def test_another_thread_is_waited_for() -> None:
    future: Future[int] = Future()
    thread = threading.Thread(target=lambda: future.set_result(5))
    thread.start()
    assert future.wait() == 5
    thread.join()


def test_what_a_callback_raises_is_logged(capsys: pytest.CaptureFixture[str]) -> None:
    future: Future[int] = Future()
    future.add_done_callback(lambda f: 1 / 0)  # type: ignore[arg-type, return-value]
    future.set_result(1)
    assert "ZeroDivisionError" in capsys.readouterr().err
    with pytest.raises(TypeError, match="incompatible function arguments"):
        future.then(3)  # type: ignore[arg-type]


def test_futures_stay_in_their_process() -> None:
    for use in (pickle.dumps, copy.deepcopy):
        with pytest.raises(RuntimeError, match="Can not pickle"):
            use(Future())
    with pytest.raises(ValueError, match="Expected devices to have indices, got cpu"):
        Future(devices=["cpu"])
