"""What ``import torchvision`` finds under ``rushlight run``: the models, and nothing else yet."""

from rushlight import models

__all__ = ["models"]
