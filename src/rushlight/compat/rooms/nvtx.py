"""``torch.cuda.nvtx``: marks for NVIDIA's profiler, which is not there."""

from rushlight.absent import devices as no_device

no_device.needs(globals(), "cuda.nvtx", "mark range_end range_pop range_push range_start range", RuntimeError)
