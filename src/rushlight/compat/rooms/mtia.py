"""``torch.mtia``: there is no such device.  The questions are answered, what needs one raises."""

from rushlight.absent import devices as no_device

_room = globals()
no_device.answers(_room, {
    "_is_compiled": False, "_is_in_bad_fork": False,
    "device_count": 0, "get_rng_state_all": [], "is_available": False, "is_bf16_supported": False,
    "is_initialized": False, "manual_seed": None, "manual_seed_all": None, "max_memory_allocated": 0,
    "memory_allocated": 0, "memory_stats": {}, "reset_peak_memory_stats": None, "seed": None, "seed_all": None,
    "set_rng_state_all": None,
    })  # fmt: skip
no_device.needs(
    _room, "mtia",
    "attach_out_of_memory_observer current_device current_stream default_stream empty_cache get_device_capability "
    "get_device_properties get_rng_state graph_pool_handle init initial_seed record_memory_history set_device "
    "set_rng_state set_stream snapshot synchronize", RuntimeError,
    )  # fmt: skip
no_device.contexts(_room, "mtia", "device stream")  # fmt: skip
no_device.classes(_room, "mtia", "Event MTIAGraph Stream graph")  # fmt: skip
