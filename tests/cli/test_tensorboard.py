"""What is written for TensorBoard, read back; needs the package tensorboard."""

from __future__ import annotations

import pytest

import rushlight as torch

pytest.importorskip("tensorboard", exc_type=ImportError)


def test_settings_of_a_run_are_three_messages() -> None:
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

    from rushlight.compat.rooms.tensorboard.summary import hparams

    given = {"lr": 0.5, "deep": True, "name": "x", "left out": None, "t": torch.tensor([2.0])}
    made = [s.value[0] for s in hparams(given, {"loss": 1.0}, {"lr": [0.5, 1.0]})]
    assert [v.tag for v in made] == [f"_hparams_/{n}" for n in ("experiment", "session_start_info", "session_end_info")]
    experiment, start, end = (HParamsPluginData.FromString(v.metadata.plugin_data.content) for v in made)
    infos = {info.name: info for info in experiment.experiment.hparam_infos}
    assert {name: info.type for name, info in infos.items()} == {"lr": 3, "deep": 3, "name": 1, "t": 3}
    assert [v.number_value for v in infos["lr"].domain_discrete.values] == [0.5, 1.0]
    assert [info.name.tag for info in experiment.experiment.metric_infos] == ["loss"]
    values = start.session_start_info.hparams
    assert (values["lr"].number_value, values["deep"].number_value, values["t"].number_value) == (0.5, 1, 2)
    assert values["name"].string_value == "x" and end.session_end_info.status == 1
    with pytest.raises(TypeError, match="hparam_dict should be a dictionary"):
        hparams(3, {})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="value should be one of int, float, str, bool, or"):
        hparams({"a": [1]}, {})
    with pytest.raises(TypeError, match=r"hparam_domain_discrete\[a\] should be a list of same type"):
        hparams({"a": 1}, {}, {"a": ["x"]})


def test_numbers_tensors_and_counted_histograms_are_read_back(tmp_path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    from rushlight.compat.rooms.tensorboard import SummaryWriter

    with SummaryWriter(tmp_path) as writer:
        writer.add_scalar("old", torch.tensor([1.5]))
        writer.add_scalar("new", 2.5, new_style=True, double_precision=True)
        writer.add_tensor("t", torch.arange(3))
        writer.add_histogram_raw("h", 0, 1, 2, 3, 4, [1, 2], [3, 4])
        with pytest.raises(AssertionError, match="should contain one element"):
            writer.add_scalar("two", torch.ones(2))
        with pytest.raises(ValueError, match="unsupported tensor dtype"):
            writer.add_tensor("c", torch.ones(2, dtype=torch.complex64))
    read = EventAccumulator(str(tmp_path))
    read.Reload()
    assert read.Scalars("old")[0].value == 1.5
    assert list(read.Tensors("new")[0].tensor_proto.double_val) == [2.5]
    assert list(read.Tensors("t")[0].tensor_proto.int64_val) == [0, 1, 2]
    assert read.Histograms("h")[0].histogram_value.bucket == [3, 4]


def test_what_is_added_after_closing_goes_into_a_new_file(tmp_path) -> None:
    """Trainers write the settings by the inner writer, and close more often than once."""
    from rushlight.compat.rooms.tensorboard import SummaryWriter
    from rushlight.compat.rooms.tensorboard.summary import scalar

    writer = SummaryWriter(tmp_path, filename_suffix=".first")
    writer._get_file_writer().add_summary(scalar("a", 1.0), 0)
    assert writer._get_file_writer() is writer.file_writer
    writer.close()
    assert writer.file_writer is None
    writer.close()
    writer.add_scalar("a", 2.0, 1)
    writer.close()
    assert len(list(tmp_path.iterdir())) == 2
