"""Models under the names of ``torchvision.models``, so that its weight files load; and a small language model.

>>> from rushlight import models
>>> models.list_models()[:2]
['resnet101', 'resnet152']
"""

from typing import TYPE_CHECKING

from rushlight.models import language as language
from rushlight.models import resnet as resnet
from rushlight.models import vision_transformer as vision_transformer
from rushlight.models.resnet import *
from rushlight.models.vision_transformer import *
from rushlight.models.weights import Weights as Weights
from rushlight.models.weights import WeightsEnum as WeightsEnum
from rushlight.models.weights import get_model as get_model
from rushlight.models.weights import get_model_builder as get_model_builder
from rushlight.models.weights import get_model_weights as get_model_weights
from rushlight.models.weights import get_weight as get_weight
from rushlight.models.weights import list_models as list_models

if not TYPE_CHECKING:  # what reads types knows what a * brings
    __all__ = ["Weights", "WeightsEnum", "get_model", "get_model_builder", "get_model_weights", "get_weight",
               "language", "list_models", "resnet", "vision_transformer"]  # fmt: skip
    __all__ += resnet.__all__
    __all__ += vision_transformer.__all__
