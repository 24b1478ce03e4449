"""``torch.xpu``: there is no such device.  The questions are answered, what needs one raises."""

from rushlight.absent import devices as no_device

_room = globals()
no_device.answers(_room, {
    "_is_compiled": False, "_is_in_bad_fork": False,
    "device_count": 0, "empty_cache": None, "get_arch_list": [], "get_gencode_flags": "", "get_rng_state_all": [],
    "is_available": False, "is_bf16_supported": False, "is_initialized": False, "is_tf32_supported": False,
    "manual_seed": None, "manual_seed_all": None, "max_memory_allocated": 0, "max_memory_reserved": 0,
    "memory_allocated": 0, "memory_reserved": 0, "memory_snapshot": [], "memory_stats": {},
    "memory_stats_as_nested_dict": {}, "reset_accumulated_memory_stats": None, "reset_peak_memory_stats": None,
    "seed": None, "seed_all": None, "set_rng_state_all": None,
    })  # fmt: skip
no_device.needs(
    _room, "xpu",
    "can_device_access_peer change_current_allocator clock_rate current_device current_stream device_memory_used "
    "get_device_capability get_device_name get_device_properties get_per_process_memory_fraction get_rng_state "
    "get_stream_from_external graph_pool_handle init initial_seed is_current_stream_capturing "
    "make_graphed_callables mem_get_info memory_usage power_draw set_device set_per_process_memory_fraction "
    "set_rng_state set_stream synchronize temperature use_mem_pool utilization",
    )  # fmt: skip
no_device.contexts(_room, "xpu", "StreamContext device device_of stream")  # fmt: skip
no_device.classes(_room, "xpu", "Event MemPool Stream XPUGraph XPUPluggableAllocator graph")  # fmt: skip
default_generators = ()
