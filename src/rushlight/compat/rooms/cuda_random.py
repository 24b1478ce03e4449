"""``torch.cuda.random``: the functions of ``torch.cuda`` about random numbers."""

from rushlight.compat.rooms.cuda_names import _room, set_rng_state_all
from rushlight.cuda import manual_seed, manual_seed_all

__all__ = ["get_rng_state", "get_rng_state_all", "initial_seed", "manual_seed", "manual_seed_all", "seed", "seed_all",
           "set_rng_state", "set_rng_state_all"]  # fmt: skip
get_rng_state, get_rng_state_all, set_rng_state = (
    _room[n] for n in ("get_rng_state", "get_rng_state_all", "set_rng_state")
)
seed, seed_all, initial_seed = _room["seed"], _room["seed_all"], _room["initial_seed"]
