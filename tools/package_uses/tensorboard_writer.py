"""Scalars, histograms, pictures and text written by SummaryWriter and read back."""

import tempfile

import same
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch.utils.tensorboard import SummaryWriter

with tempfile.TemporaryDirectory() as folder:
    with SummaryWriter(folder) as writer:
        for step in range(3):
            writer.add_scalar("loss", 1.0 / (step + 1), step)
        writer.add_histogram("weights", same.data(100), 0)
        writer.add_image("picture", same.data(3, 8, 8).sigmoid(), 0)
        writer.add_text("note", "hello", 0)
    events = EventAccumulator(folder, size_guidance={"images": 0})
    events.Reload()
    histogram = events.Histograms("weights")[0].histogram_value
    numbers = [e.value for e in events.Scalars("loss")] + [
        histogram.min,
        histogram.max,
        histogram.num,
        histogram.sum,
        histogram.sum_squares,
    ]
    same.report([*numbers, len(histogram.bucket), events.Images("picture")[0].width])
