"""`torch.Stream` and `torch.Event` of the CPU."""

import pytest

import rushlight as torch


def test_work_on_the_cpu_is_done_when_it_is_asked_for() -> None:
    stream, event = torch.Stream(), torch.Event("cpu")
    assert stream.query() and event.query() and not stream.is_capturing()
    stream.synchronize()
    event.synchronize()
    event.wait(stream)
    stream.wait_event(event)
    with stream as entered:
        assert entered is stream


def test_streams_are_equal_where_their_devices_are() -> None:
    stream = torch.Stream(device="cpu", priority=1)
    assert stream == torch.Stream() != torch.Stream("meta") and len({stream, torch.Stream()}) == 1
    assert (stream.device, stream.device_index, stream.device_type, stream.stream_id) == (torch.device("cpu"), -1, 0, 0)


def test_streams_and_events_say_what_they_are() -> None:
    assert repr(torch.Stream()) == "torch.Stream device_type=cpu, device_index=-1, stream_id=0"
    shown = "torch.Event device_type=cpu, device_index=-1, event_flag=1, event_id=0"
    assert repr(torch.Event(enable_timing=True)) == shown


def test_what_needs_an_accelerator_is_refused() -> None:
    stream, event = torch.Stream(), torch.Event()
    for call in (stream.record_event, event.record, lambda: stream.wait_stream(stream), lambda: torch.Stream("cuda")):
        with pytest.raises(RuntimeError):
            call()
    with pytest.raises(ValueError, match="enable_timing=True"):
        event.elapsed_time(event)
