"""``torch.utils.model_zoo``: the older name of what loads weights of a known model."""

from rushlight.hub import load_state_dict_from_url, tqdm

__all__ = ["load_url", "tqdm"]

load_url = load_state_dict_from_url
