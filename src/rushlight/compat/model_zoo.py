"""``torch.utils.model_zoo``: the older name of what loads weights of a known model."""

from typing import Any

from rushlight.hub import load_state_dict_from_url

__all__ = ["load_url", "tqdm"]

load_url = load_state_dict_from_url


def tqdm(iterable: Any = None, **options: Any) -> Any:
    """What is given, as it is: nothing is fetched whose progress could be shown."""
    return iterable
