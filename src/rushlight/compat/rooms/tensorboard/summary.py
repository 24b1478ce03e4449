"""``torch.utils.tensorboard.summary``: what TensorBoard shows, as messages, by the package tensorboard."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any

import numpy as np
from tensorboard.compat.proto.summary_pb2 import HistogramProto, Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.plugins.hparams.api_pb2 import Experiment, HParamInfo, MetricInfo, MetricName
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData, SessionEndInfo, SessionStartInfo

from rushlight.tensor import Tensor

__all__ = ["histogram", "histogram_raw", "hparams", "image", "scalar", "tensor_proto", "text"]

# How a message names a dtype, and where it holds such elements.
_FIELDS = {
    np.dtype(np.float32): ("DT_FLOAT", "float_val"), np.dtype(np.float64): ("DT_DOUBLE", "double_val"),
    np.dtype(np.uint8): ("DT_UINT8", "uint32_val"), np.dtype(np.int8): ("DT_INT8", "int_val"),
    np.dtype(np.int16): ("DT_INT16", "int_val"), np.dtype(np.int32): ("DT_INT32", "int_val"),
    np.dtype(np.int64): ("DT_INT64", "int64_val"), np.dtype(np.bool_): ("DT_BOOL", "bool_val"),
}  # fmt: skip


def _array(values: Any) -> Any:
    return values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)


def scalar(
    name: str, tensor: Any, collections: Any = None, new_style: bool = False, double_precision: bool = False
) -> Any:
    """The summary of a number, or of a tensor of one element.

    new_style: as a tensor, of float64 with `double_precision`.  Raises AssertionError for other numbers of elements.
    """
    array = _array(tensor).squeeze()
    if array.ndim:
        raise AssertionError(f"scalar: Tensor should contain one element, got shape {array.shape}")
    if not new_style:
        return Summary(value=[Summary.Value(tag=name, simple_value=float(array))])
    kind: dict[str, Any] = {"double_val": [float(array)]} if double_precision else {"float_val": [float(array)]}
    proto = TensorProto(dtype="DT_DOUBLE" if double_precision else "DT_FLOAT", **kind)
    return Summary(value=[Summary.Value(tag=name, tensor=proto, metadata=_metadata("scalars"))])


def tensor_proto(tag: str, tensor: Tensor) -> Any:
    """The summary of a tensor as it is.  Raises ValueError for dtypes that TensorBoard does not have."""
    array = _array(tensor)
    if array.dtype not in _FIELDS:
        raise ValueError(f"tensor_proto: {tag} has unsupported tensor dtype {tensor.dtype}")
    kind, field = _FIELDS[array.dtype]
    shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=n) for n in array.shape])
    held: dict[str, Any] = {field: array.reshape(-1).tolist()}
    proto = TensorProto(dtype=kind, tensor_shape=shape, **held)
    return Summary(value=[Summary.Value(tag=tag, tensor=proto, metadata=_metadata("tensor"))])


def histogram_raw(
    name: str, min: float, max: float, num: float, sum: float, sum_squares: float,
    bucket_limits: Iterable[float], bucket_counts: Iterable[float],
) -> Any:  # fmt: skip
    """The summary of a histogram whose values were counted elsewhere.  bucket_limits: the upper edges of the buckets."""
    proto = HistogramProto(min=min, max=max, num=num, sum=sum, sum_squares=sum_squares,
                           bucket_limit=bucket_limits, bucket=bucket_counts)  # fmt: skip
    return Summary(value=[Summary.Value(tag=name, histo=proto)])


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
    return histogram_raw(name, array.min(), array.max(), array.size, array.sum(), array.dot(array), ends, bucket)


def image(tag: str, tensor: Any, rescale: float = 1, dataformats: str = "NCHW") -> Any:
    """The summary of a picture, as PNG: of numbers from 0 to 1, or of bytes, times `rescale`.  Needs Pillow.

    Raises ValueError for other dimensions than `dataformats` names.
    """
    from PIL import Image

    array = _array(tensor)
    formats = dataformats.upper()
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
    scale = rescale * (1 if array.dtype == np.uint8 else 255)
    array = (array.astype(np.float32) * scale).clip(0, 255).astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(array).save(file, "PNG")
    height, width, channels = array.shape
    made = Summary.Image(height=height, width=width, colorspace=channels, encoded_image_string=file.getvalue())
    return Summary(value=[Summary.Value(tag=tag, image=made)])


def text(tag: str, text: str) -> Any:
    """The summary of a text."""
    shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=1)])
    tensor = TensorProto(dtype="DT_STRING", string_val=[text.encode()], tensor_shape=shape)
    return Summary(value=[Summary.Value(tag=f"{tag}/text_summary", metadata=_metadata("text"), tensor=tensor)])


def hparams(
    hparam_dict: dict[str, Any],
    metric_dict: dict[str, Any],
    hparam_domain_discrete: dict[str, list[Any]] | None = None,
) -> tuple[Any, Any, Any]:
    """The summaries of an experiment's settings and metrics, of a run's start with those settings, and of its end.

    hparam_dict: numbers, texts and tensors of one element; settings of None are left out; hparam_domain_discrete: the values
    that settings can have.  Raises TypeError for what are no dictionaries, ValueError for other settings.
    """
    domains = {} if hparam_domain_discrete is None else hparam_domain_discrete
    for what, given in (
        ("hparam_dict", hparam_dict),
        ("metric_dict", metric_dict),
        ("hparam_domain_discrete", domains),
    ):
        if not isinstance(given, dict):
            raise TypeError(f"hparams: parameter: {what} should be a dictionary, got {type(given).__name__}")
    values = {name: _setting(name, value) for name, value in hparam_dict.items() if value is not None}
    infos = [_described(name, value, domains.get(name)) for name, value in values.items()]
    metrics = [MetricInfo(name=MetricName(tag=name)) for name in metric_dict]
    start = SessionStartInfo()
    for name, value in values.items():
        setattr(start.hparams[name], f"{_kind(value)}_value", value)
    return (
        _settings("experiment", HParamsPluginData(experiment=Experiment(hparam_infos=infos, metric_infos=metrics))),
        _settings("session_start_info", HParamsPluginData(session_start_info=start)),
        _settings("session_end_info", HParamsPluginData(session_end_info=SessionEndInfo(status="STATUS_SUCCESS"))),
    )


def _setting(name: str, value: Any) -> float | str:
    if isinstance(value, str):
        return value
    if isinstance(value, (int, float)):
        return float(value)
    if isinstance(value, (Tensor, np.ndarray, np.number)) and _array(value).size:
        return float(_array(value).reshape(-1)[0])
    raise ValueError(
        f"hparams: value should be one of int, float, str, bool, or torch.Tensor, got {type(value).__name__} for {name}"
    )


def _kind(value: float | str) -> str:
    """How the field of a message is called that holds such a value."""
    return "string" if isinstance(value, str) else "number"


def _described(name: str, value: float | str, domain: list[Any] | None) -> Any:
    """A setting by name and kind, with the values that it can have, which must be of that kind."""
    kind = "DATA_TYPE_STRING" if isinstance(value, str) else "DATA_TYPE_FLOAT64"
    info = HParamInfo(name=name, type=kind)
    if domain is not None:
        if not isinstance(domain, list) or any(_kind(each) != _kind(value) for each in domain):
            raise TypeError(
                f"hparams: parameter: hparam_domain_discrete[{name}] should be a list of same type as hparam_dict[{name}]"
            )
        info.domain_discrete.extend([_setting(name, each) for each in domain])
    return info


def _settings(name: str, content: Any) -> Any:
    metadata = _metadata("hparams", content.SerializeToString())
    return Summary(value=[Summary.Value(tag=f"_hparams_/{name}", metadata=metadata)])


def _metadata(plugin: str, content: bytes = b"") -> Any:
    return SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name=plugin, content=content))
