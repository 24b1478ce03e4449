"""``torch.utils.tensorboard.writer``: writes what TensorBoard shows, by the package tensorboard, which has to be installed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, NoReturn, Self

import numpy as np
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from rushlight.compat.rooms.tensorboard.summary import (
    histogram,
    histogram_raw,
    hparams,
    image,
    scalar,
    tensor_proto,
    text,
)
from rushlight.tensor import Tensor

__all__ = ["FileWriter", "SummaryWriter"]


class FileWriter:
    """Puts summaries into a file of events.

    log_dir: the folder; max_queue: how many wait to be written; flush_secs: seconds after which they are written in any case;
    filename_suffix: the end of the file's name.
    """

    def __init__(self, log_dir: Any, max_queue: int = 10, flush_secs: int = 120, filename_suffix: str = "") -> None:
        self.event_writer = EventFileWriter(str(log_dir), max_queue, flush_secs, filename_suffix)

    def get_logdir(self) -> str:
        """The folder."""
        return str(self.event_writer.get_logdir())

    def add_event(self, event: Any, step: int | None = None, walltime: float | None = None) -> None:
        """Put an event into the file."""
        event.wall_time = time.time() if walltime is None else walltime
        if step is not None:
            event.step = int(step)
        self.event_writer.add_event(event)

    def add_summary(self, summary: Any, global_step: int | None = None, walltime: float | None = None) -> None:
        """Put a summary into the file."""
        self.add_event(Event(summary=summary), global_step, walltime)

    def flush(self) -> None:
        """Write what waits."""
        self.event_writer.flush()

    def close(self) -> None:
        """Write what waits, and close the file."""
        self.event_writer.close()


def _refused(name: str, instead: str) -> Callable[..., NoReturn]:
    """A method that is not there.  instead: what to do."""

    def refuse(self: SummaryWriter, *args: object, **kwargs: object) -> NoReturn:
        """Refused: raises NotImplementedError."""
        raise NotImplementedError(f"SummaryWriter.{name}: not implemented by rushlight; {instead}")

    return refuse


class SummaryWriter:
    """Writes what TensorBoard shows into a folder.

    log_dir: the folder, by default a new one below ``runs``; comment: the end of that one's name; purge_step: the first step
    that is not shown, of a run that goes on; max_queue, flush_secs, filename_suffix: see FileWriter.
    """

    def __init__(self, log_dir: Any = None, comment: str = "", purge_step: int | None = None, max_queue: int = 10,
                 flush_secs: int = 120, filename_suffix: str = "") -> None:  # fmt: skip
        if not log_dir:
            import socket

            log_dir = f"runs/{time.strftime('%b%d_%H-%M-%S')}_{socket.gethostname()}{comment}"
        self.log_dir, self._settings = str(log_dir), (max_queue, flush_secs, filename_suffix)
        self.all_writers: dict[str, FileWriter] = {}
        self.file_writer: FileWriter | None = self._writer_of(self.log_dir)
        if purge_step is not None:
            self._get_file_writer().add_event(Event(file_version="brain.Event:2"), purge_step)

    def _writer_of(self, folder: str) -> FileWriter:
        if folder not in self.all_writers:
            self.all_writers[folder] = FileWriter(folder, *self._settings)
        return self.all_writers[folder]

    def _get_file_writer(self) -> FileWriter:
        """The writer of the run's own file: a new one after `close`."""
        self.file_writer = self._writer_of(self.log_dir)
        return self.file_writer

    def get_logdir(self) -> str:
        """The folder."""
        return self.log_dir

    def add_scalar(self, tag: str, scalar_value: Any, global_step: int | None = None, walltime: float | None = None,
                   new_style: bool = False, double_precision: bool = False) -> None:  # fmt: skip
        """A number.  new_style: as a tensor; double_precision: one of float64."""
        summary = scalar(tag, scalar_value, None, new_style, double_precision)
        self._get_file_writer().add_summary(summary, global_step, walltime)

    def add_tensor(
        self, tag: str, tensor: Tensor, global_step: int | None = None, walltime: float | None = None
    ) -> None:
        """A tensor as it is."""
        self._get_file_writer().add_summary(tensor_proto(tag, tensor), global_step, walltime)

    def add_scalars(self, main_tag: str, tag_scalar_dict: dict[str, Any], global_step: int | None = None,
                    walltime: float | None = None) -> None:  # fmt: skip
        """Several numbers of one picture, each in a folder of its own."""
        for tag, value in tag_scalar_dict.items():
            folder = f"{self.log_dir}/{main_tag.replace('/', '_')}_{tag}"
            self._writer_of(folder).add_summary(scalar(main_tag, value), global_step, walltime)

    def add_histogram(self, tag: str, values: Any, global_step: int | None = None, bins: Any = "tensorflow",
                      walltime: float | None = None, max_bins: int | None = None) -> None:  # fmt: skip
        """How values are distributed.  bins: "tensorflow", or what `numpy.histogram` takes."""
        self._get_file_writer().add_summary(histogram(tag, values, bins, max_bins), global_step, walltime)

    def add_histogram_raw(self, tag: str, min: float, max: float, num: float, sum: float, sum_squares: float,
                          bucket_limits: Iterable[float], bucket_counts: Iterable[float], global_step: int | None = None,
                          walltime: float | None = None) -> None:  # fmt: skip
        """How values are distributed that were counted elsewhere: see `summary.histogram_raw`."""
        summary = histogram_raw(tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts)
        self._get_file_writer().add_summary(summary, global_step, walltime)

    def add_image(self, tag: str, img_tensor: Any, global_step: int | None = None, walltime: float | None = None,
                  dataformats: str = "CHW") -> None:  # fmt: skip
        """A picture of numbers from 0 to 1, or of bytes.  Needs Pillow."""
        self._get_file_writer().add_summary(image(tag, img_tensor, 1, dataformats), global_step, walltime)

    def add_images(self, tag: str, img_tensor: Any, global_step: int | None = None, walltime: float | None = None,
                   dataformats: str = "NCHW") -> None:  # fmt: skip
        """Pictures side by side."""
        self.add_image(tag, img_tensor, global_step, walltime, dataformats)

    def add_figure(self, tag: str, figure: Any, global_step: int | None = None, close: bool = True,
                   walltime: float | None = None) -> None:  # fmt: skip
        """A figure of Matplotlib, or several."""
        for one in figure if isinstance(figure, (list, tuple)) else [figure]:
            one.canvas.draw()
            self.add_image(tag, np.asarray(one.canvas.buffer_rgba())[..., :3], global_step, walltime, "HWC")
            if close:
                import matplotlib.pyplot

                matplotlib.pyplot.close(one)

    def add_text(
        self, tag: str, text_string: str, global_step: int | None = None, walltime: float | None = None
    ) -> None:
        """A text."""
        self._get_file_writer().add_summary(text(tag, text_string), global_step, walltime)

    def add_hparams(self, hparam_dict: dict[str, Any], metric_dict: dict[str, Any], hparam_domain_discrete: Any = None,
                    run_name: str | None = None, global_step: int | None = None) -> None:  # fmt: skip
        """The settings of a run and what came of it.  hparam_domain_discrete: the values that settings can have."""
        written = hparams(hparam_dict, metric_dict, hparam_domain_discrete)
        writer = self._writer_of(f"{self.log_dir}/{run_name or time.time()}")
        for summary in written:
            writer.add_summary(summary)
        for key, value in metric_dict.items():
            writer.add_summary(scalar(key, value), global_step)

    add_graph = _refused("add_graph", "rushlight.viz.graph draws the graph of autograd")
    add_embedding = _refused("add_embedding", "write the vectors with numpy.savetxt for TensorBoard's projector")
    add_video = _refused("add_video", "add its pictures with add_images")
    add_audio = _refused("add_audio", "write a file of sound")
    add_mesh = _refused("add_mesh", "add a picture of it with add_figure")
    add_pr_curve = _refused("add_pr_curve", "add a picture of it with add_figure")

    def flush(self) -> None:
        """Write what waits."""
        for writer in self.all_writers.values():
            writer.flush()

    def close(self) -> None:
        """Write what waits, and close the files; what is added later goes into new ones."""
        for writer in self.all_writers.values():
            writer.close()
        self.file_writer = None
        self.all_writers.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()
