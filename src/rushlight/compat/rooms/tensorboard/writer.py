"""``torch.utils.tensorboard.writer``: writes what TensorBoard shows, by the package tensorboard, which has to be installed."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterable
from typing import Any, NoReturn, Self

import numpy as np
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import HistogramProto, Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.summary.writer.event_file_writer import EventFileWriter

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


def _array(values: Any) -> Any:
    return values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)


def _edges() -> list[float]:
    """The edges of buckets: of both signs, each a tenth larger than the one before.  Source: TensorBoard's own buckets."""
    up, edge = [], 1e-12
    while edge < 1e20:
        up.append(edge)
        edge *= 1.1
    return [-e for e in reversed(up)] + [0.0] + up


def histogram(name: str, values: Any, bins: Any = "tensorflow", max_bins: int | None = None) -> Any:
    """The summary of a histogram.  Raises ValueError for no values."""
    array = _array(values).reshape(-1).astype(np.float64)
    if not array.size:
        raise ValueError("add_histogram: expected at least one value, got none")
    counts, limits = np.histogram(array, bins=_edges() if isinstance(bins, str) and bins == "tensorflow" else bins)
    if max_bins is not None and len(counts) > max_bins:
        step = -(-len(counts) // max_bins)
        counts = np.add.reduceat(counts, np.arange(0, len(counts), step))
        limits = np.append(limits[:-1:step], limits[-1])
    (used,) = np.nonzero(counts)
    first, last = used[0], used[-1] + 1
    # An empty bucket in front says where the first begins.
    bucket, ends = [0, *counts[first:last].tolist()], limits[first : last + 1].tolist()
    proto = HistogramProto(min=array.min(), max=array.max(), num=array.size, sum=array.sum(), sum_squares=array.dot(array),
                           bucket_limit=ends, bucket=bucket)  # fmt: skip
    return Summary(value=[Summary.Value(tag=name, histo=proto)])


def picture(name: str, values: Any, formats: str) -> Any:
    """The summary of a picture, as PNG.  Raises ValueError for other dimensions than `formats` names."""
    from PIL import Image

    array = _array(values)
    formats = formats.upper()
    if array.ndim != len(formats) or set(formats) - set("NCHW"):
        raise ValueError(
            f"add_image: expected as many dimensions as in dataformats={formats!r}, got shape {array.shape}"
        )
    if "N" in formats:
        order = [formats.index(c) for c in "NHWC"] if "C" in formats else [formats.index(c) for c in "NHW"]
        array = np.concatenate(list(array.transpose(order)), axis=1)  # side by side
    else:
        array = array.transpose([formats.index(c) for c in "HWC" if c in formats])
    if array.ndim == 2:
        array = array[:, :, None]
    if array.shape[2] == 1:
        array = array.repeat(3, 2)
    if array.dtype != np.uint8:
        array = (array.astype(np.float32) * 255).clip(0, 255).astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(array).save(file, "PNG")
    height, width, channels = array.shape
    image = Summary.Image(height=height, width=width, colorspace=channels, encoded_image_string=file.getvalue())
    return Summary(value=[Summary.Value(tag=name, image=image)])


def text(name: str, words: str) -> Any:
    """The summary of a text."""
    plugin = SummaryMetadata.PluginData(plugin_name="text", content=b"")
    tensor = TensorProto(
        dtype="DT_STRING",
        string_val=[words.encode()],
        tensor_shape=TensorShapeProto(dim=[TensorShapeProto.Dim(size=1)]),
    )
    return Summary(
        value=[Summary.Value(tag=f"{name}/text_summary", metadata=SummaryMetadata(plugin_data=plugin), tensor=tensor)]
    )


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
        self.file_writer = self._writer_of(self.log_dir)
        if purge_step is not None:
            self.file_writer.add_event(Event(file_version="brain.Event:2"), purge_step)

    def _writer_of(self, folder: str) -> FileWriter:
        if folder not in self.all_writers:
            self.all_writers[folder] = FileWriter(folder, *self._settings)
        return self.all_writers[folder]

    def get_logdir(self) -> str:
        """The folder."""
        return self.log_dir

    def add_scalar(self, tag: str, scalar_value: Any, global_step: int | None = None, walltime: float | None = None,
                   new_style: bool = False, double_precision: bool = False) -> None:  # fmt: skip
        """A number."""
        value = float(_array(scalar_value).reshape(()))
        self.file_writer.add_summary(Summary(value=[Summary.Value(tag=tag, simple_value=value)]), global_step, walltime)

    def add_scalars(self, main_tag: str, tag_scalar_dict: dict[str, Any], global_step: int | None = None,
                    walltime: float | None = None) -> None:  # fmt: skip
        """Several numbers of one picture, each in a folder of its own."""
        for tag, value in tag_scalar_dict.items():
            folder = f"{self.log_dir}/{main_tag.replace('/', '_')}_{tag}"
            summary = Summary(value=[Summary.Value(tag=main_tag, simple_value=float(_array(value).reshape(())))])
            self._writer_of(folder).add_summary(summary, global_step, walltime)

    def add_histogram(self, tag: str, values: Any, global_step: int | None = None, bins: Any = "tensorflow",
                      walltime: float | None = None, max_bins: int | None = None) -> None:  # fmt: skip
        """How values are distributed.  bins: "tensorflow", or what `numpy.histogram` takes."""
        self.file_writer.add_summary(histogram(tag, values, bins, max_bins), global_step, walltime)

    def add_image(self, tag: str, img_tensor: Any, global_step: int | None = None, walltime: float | None = None,
                  dataformats: str = "CHW") -> None:  # fmt: skip
        """A picture of numbers from 0 to 1, or of bytes.  Needs Pillow."""
        self.file_writer.add_summary(picture(tag, img_tensor, dataformats), global_step, walltime)

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
        self.file_writer.add_summary(text(tag, text_string), global_step, walltime)

    def add_hparams(self, hparam_dict: dict[str, Any], metric_dict: dict[str, Any], hparam_domain_discrete: Any = None,
                    run_name: str | None = None, global_step: int | None = None) -> None:  # fmt: skip
        """The settings of a run and what came of it."""
        from tensorboard.plugins.hparams.summary_v2 import HParam, Metric, hparams_config_pb, hparams_pb

        values = {k: v if isinstance(v, (bool, str)) else _array(v).item() for k, v in hparam_dict.items()}
        writer = self._writer_of(f"{self.log_dir}/{run_name or time.time()}")
        writer.add_summary(hparams_config_pb([HParam(k) for k in values], [Metric(k) for k in metric_dict]))
        writer.add_summary(hparams_pb(values))
        for key, value in metric_dict.items():
            summary = Summary(value=[Summary.Value(tag=key, simple_value=float(_array(value).reshape(())))])
            writer.add_summary(summary, global_step)

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
        """Write what waits, and close the files."""
        for writer in self._writers():
            writer.close()

    def _writers(self) -> Iterable[FileWriter]:
        return self.all_writers.values()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()
