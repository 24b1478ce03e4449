"""Where the weights of a model come from: the ``weights=`` argument, the files behind it, the registry.

Nothing is downloaded.  A request is answered, in this order, from what ``RUSHLIGHT_WEIGHTS`` names (the word
``random``, a file, or a folder of files; ``rushlight run --weights`` sets it) and from the folders that
`cache_folders` lists.  Otherwise it fails and says in one line how to get the file.
"""

import enum
import functools
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

__all__ = [
    "Weights",
    "WeightsEnum",
    "build",
    "cache_folders",
    "get_model",
    "get_model_builder",
    "get_model_weights",
    "get_weight",
    "list_models",
    "register_model",
]

BASE_URL = "https://download.pytorch.org/models/"
VARIABLE = "RUSHLIGHT_WEIGHTS"

Model = TypeVar("Model")
Builder = TypeVar("Builder", bound=Callable[..., Any])

_BUILDERS: dict[str, Callable[..., Any]] = {}
_WEIGHTS: dict[str, type["WeightsEnum"]] = {}


class Weights:
    """One published weight file: its name, its address, and what the model must look like to take it.

    ``config`` holds the constructor's arguments that the file requires, such as an image size.
    """

    def __init__(self, file: str, num_params: int, **config: Any) -> None:
        self.file = file
        self.url = BASE_URL + file
        self.meta = {"num_params": num_params}
        self.config = {"num_classes": 1000, **config}

    def __repr__(self) -> str:
        return f"Weights({self.file!r})"


class WeightsEnum(enum.Enum):
    """The weight files published for one model; ``DEFAULT`` is the best of them."""

    @classmethod
    def verify(cls, request: object) -> "WeightsEnum | None":
        """The member that ``request`` (a member, its name, or None) means.

        Raises ValueError for a name that is not there and TypeError for another model's weights.
        """
        if request is None or isinstance(request, cls):
            return request
        if isinstance(request, str):
            name = request.removeprefix(cls.__name__ + ".")
            if name in cls.__members__:
                return cls[name]
            raise ValueError(f"{cls.__name__} has no weights {request!r}: it has {', '.join(cls.__members__)}")
        raise TypeError(f"weights must be a {cls.__name__}, the name of one, or None, but got {request!r}")

    @property
    def url(self) -> str:
        """Where the file is published."""
        return str(self.value.url)

    @property
    def meta(self) -> dict[str, Any]:
        """What is known of the file: ``num_params``."""
        return dict(self.value.meta)

    def get_state_dict(self, progress: bool = True, check_hash: bool = False) -> dict[str, Any]:
        """The parameters and buffers by name, from a file on this machine.

        Raises FileNotFoundError, with the way to get the file, when there is none.
        """
        return read_state_dict(find_file(self.value.file))


def cache_folders() -> list[Path]:
    """The folders in which weight files are looked for, those of PyTorch's hub among them."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folders = [cache / "rushlight" / "checkpoints"]
    if os.environ.get("TORCH_HOME"):
        folders.append(Path(os.environ["TORCH_HOME"]) / "hub" / "checkpoints")
    return [*folders, cache / "torch" / "hub" / "checkpoints"]


def find_file(name: str) -> Path:
    """The path of weight file ``name`` on this machine; FileNotFoundError with advice when it is not here."""
    given = os.environ.get(VARIABLE)
    if given:
        path = Path(given).expanduser()
        if path.is_file():
            return path
        if not path.is_dir():
            raise FileNotFoundError(f"the weights asked for by --weights or {VARIABLE} are not there: {given!r}")
        if (path / name).is_file():
            return path / name
    for folder in cache_folders():
        if (folder / name).is_file():
            return folder / name
    raise FileNotFoundError(
        f"weights {name!r} are not on this machine: put {BASE_URL}{name} into {cache_folders()[0]}, "
        f"or name a file with --weights or {VARIABLE}, or run with --weights random (untrained)"
    )


def read_state_dict(path: Path) -> dict[str, Any]:
    """The state dict in ``path``, a file of ``torch.save`` or, by its suffix, of safetensors."""
    if path.suffix == ".safetensors":
        from rushlight.serialization.safetensors import load_file

        return dict(load_file(str(path)))
    from rushlight.serialization import load

    state = load(str(path), map_location="cpu", weights_only=True)
    return dict(state.get("state_dict", state))


def build(make: Callable[..., Model], weights: WeightsEnum | None, options: dict[str, Any]) -> Model:
    """The model ``make(**options)``, with ``weights`` loaded into it if they are given.

    Options that the weights require are filled in; ValueError where the caller wants others.
    """
    if weights is None:
        return make(**options)
    for name, needed in weights.value.config.items():
        if options.setdefault(name, needed) != needed:
            raise ValueError(f"{weights} need {name}={needed}, but got {name}={options[name]}")
    if os.environ.get(VARIABLE) == "random":
        print(f"rushlight: {weights} are replaced by random weights (--weights random)", file=sys.stderr)
        return make(**options)
    state = weights.get_state_dict()  # before the model: a missing file fails at once
    model = make(**options)
    model.load_state_dict(state)  # type: ignore[attr-defined]
    return model


def register_model(published: type[WeightsEnum]) -> Callable[[Builder], Builder]:
    """Enters a model's builder under its own name, with the weights that are published for it.

    The builder then also takes a weights' name for ``weights``, and the older ``pretrained=True``.
    """

    def decorate(builder: Builder) -> Builder:
        @functools.wraps(builder)
        def checked(*args: Any, **kwargs: Any) -> Any:
            if args:
                kwargs["weights"], *surplus = args
                if surplus:
                    raise TypeError(f"{builder.__name__}() takes weights= and keyword arguments only, got {args!r}")
            pretrained = kwargs.pop("pretrained", False)
            request = kwargs.pop("weights", None)
            if pretrained or request is True:
                request = "DEFAULT"
            return builder(weights=published.verify(request or None), **kwargs)

        _BUILDERS[builder.__name__] = checked
        _WEIGHTS[builder.__name__] = published
        return checked  # type: ignore[return-value]

    return decorate


def get_model_builder(name: str) -> Callable[..., Any]:
    """The function that builds model ``name``, such as ``"resnet18"``; ValueError for an unknown name."""
    try:
        return _BUILDERS[name.lower()]
    except KeyError:
        raise ValueError(f"unknown model {name!r}: there are {', '.join(sorted(_BUILDERS))}") from None


def get_model(name: str, **config: object) -> Any:
    """Model ``name`` built with ``config``.

    >>> from rushlight import models
    >>> model = models.get_model("resnet18", weights=None, num_classes=10)
    >>> model.fc.out_features
    10
    """
    return get_model_builder(name)(**config)


def get_model_weights(name: str | Callable[..., Any]) -> type[WeightsEnum]:
    """The weights published for a model, given by its name or its builder."""
    key = name if isinstance(name, str) else name.__name__
    get_model_builder(key)
    return _WEIGHTS[key.lower()]


def get_weight(name: str) -> WeightsEnum:
    """The weights with the full name ``name``, such as ``"ResNet50_Weights.IMAGENET1K_V2"``."""
    enum_name, _, member = name.partition(".")
    for published in _WEIGHTS.values():
        if published.__name__ == enum_name and member in published.__members__:
            return published[member]
    raise ValueError(f"unknown weights {name!r}: they are named like 'ResNet18_Weights.DEFAULT'")


def list_models() -> list[str]:
    """The names that `get_model` knows, sorted."""
    return sorted(_BUILDERS)
