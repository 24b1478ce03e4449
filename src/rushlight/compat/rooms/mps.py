"""``torch.mps``: there is no such device.  The questions are answered, what needs one raises."""

from rushlight.absent import devices as no_device

_room = globals()
no_device.answers(_room, {"_is_in_bad_fork": False, "device_count": 0, "is_available": False, "manual_seed": None})  # fmt: skip
no_device.needs(
    _room, "mps",
    "compile_shader current_allocated_memory driver_allocated_memory empty_cache get_rng_state load_metallib "
    "recommended_max_memory seed set_per_process_memory_fraction set_rng_state synchronize", RuntimeError,
    )  # fmt: skip
no_device.classes(_room, "mps", "Event")  # fmt: skip
