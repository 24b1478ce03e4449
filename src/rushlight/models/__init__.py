"""Models under the names of ``torchvision.models``, so that its weight files load; and a small language model.

>>> from rushlight import models
>>> models.list_models()[:2]
['resnet101', 'resnet152']
"""

from rushlight.models import language, resnet, vision_transformer
from rushlight.models.resnet import *  # noqa: F403
from rushlight.models.vision_transformer import *  # noqa: F403
from rushlight.models.weights import (
    Weights,
    WeightsEnum,
    get_model,
    get_model_builder,
    get_model_weights,
    get_weight,
    list_models,
)

__all__ = [
    *resnet.__all__,
    *vision_transformer.__all__,
    "Weights",
    "WeightsEnum",
    "get_model",
    "get_model_builder",
    "get_model_weights",
    "get_weight",
    "language",
    "list_models",
    "resnet",
    "vision_transformer",
]
