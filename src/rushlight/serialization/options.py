"""Settings of `save` and `load`: the order of bytes, mappings, contents left out, and where storages go to and come from."""

from __future__ import annotations

import enum
import mmap
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any

from rushlight.basics import devices
from rushlight.storage import Storage

__all__ = ["LoadEndianness", "default_restore_location", "get_crc32_options", "get_default_load_endianness",
           "get_default_mmap_options", "location_tag", "register_package", "set_crc32_options",
           "set_default_load_endianness", "set_default_mmap_options", "skip_data"]  # fmt: skip

MAP_PRIVATE, MAP_SHARED = getattr(mmap, "MAP_PRIVATE", 2), getattr(mmap, "MAP_SHARED", 1)
# What `torch.utils.serialization.config` shows.
LOADING: dict[str, Any] = {
    "mmap": False,
    "endianness": None,
    "mmap_flags": MAP_PRIVATE,
    "calculate_storage_offsets": False,
}
SAVING: dict[str, Any] = {"compute_crc32": True, "use_pinned_memory_for_d2h": False, "storage_alignment": 64}


class LoadEndianness(enum.Enum):
    """The order of bytes in files that say nothing of it."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


def get_default_load_endianness() -> LoadEndianness | None:
    """What `set_default_load_endianness` was given last; None, the machine's own, at first."""
    return LOADING["endianness"]  # type: ignore[no-any-return]


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """The order of bytes in files that do not say it, as `torch.save` of PyTorch before 2.1 wrote.  Raises TypeError for what is none."""
    if endianness is not None and not isinstance(endianness, LoadEndianness):
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    LOADING["endianness"] = endianness


def get_crc32_options() -> bool:
    """What `set_crc32_options` was given last, True at first."""
    return bool(SAVING["compute_crc32"])


def set_crc32_options(compute_crc32: bool) -> None:
    """Whether `save` writes the sums of its entries, by which `load` finds damage; files without them are read unchecked."""
    SAVING["compute_crc32"] = compute_crc32


def get_default_mmap_options() -> int:
    """What `set_default_mmap_options` was given last, MAP_PRIVATE at first."""
    return int(LOADING["mmap_flags"])


class set_default_mmap_options:
    """How ``load(mmap=True)`` maps files, from now on or within a block.

    flags: MAP_PRIVATE, where changes stay in memory, or MAP_SHARED, where they go to the file.  Raises ValueError for others.
    """

    def __init__(self, flags: int) -> None:
        if flags not in (MAP_PRIVATE, MAP_SHARED):
            raise ValueError("Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE or "
                             f"mmap.MAP_SHARED, but got {flags}")  # fmt: skip
        self.prev = LOADING["mmap_flags"]
        LOADING["mmap_flags"] = flags

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        LOADING["mmap_flags"] = self.prev


class _Skipping(threading.local):
    depth = 0


_skipping = _Skipping()


class skip_data:
    """Within the block, in this thread, `save` writes zeros in the place of what storages hold, and `load` leaves them unread.

    A file so written has its full size, to be filled otherwise.  materialize_fake_tensors: taken; there are none.
    """

    def __init__(self, materialize_fake_tensors: bool = False):
        self.materialize_fake_tensors = materialize_fake_tensors

    def __enter__(self) -> None:
        _skipping.depth += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _skipping.depth -= 1


def skipping() -> bool:
    """Whether the contents of storages are left out now."""
    return _skipping.depth > 0


class Zeros:
    """So many bytes, all 0, of which there are as many in memory as are asked for.  nbytes: how many."""

    def __init__(self, nbytes: int):
        self.nbytes = nbytes

    def __len__(self) -> int:
        return self.nbytes

    def __getitem__(self, part: slice) -> bytes:
        start, end, _ = part.indices(self.nbytes)
        return bytes(end - start)


# Where storages are -------------------------------------------------------------------------------


def _on_cpu(storage: object) -> str:
    return "cpu"


def _to_cpu(storage: object, location: str) -> object:
    return storage if location.split(":")[0] == "cpu" else None


def _to_cuda(storage: object, location: str) -> object:
    if not location.startswith("cuda"):
        return None
    if devices.instead_of_cuda is None:
        raise RuntimeError(
            f"Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False, and it was on {location}. "
            "If you are running on a CPU-only machine, please use torch.load with map_location=torch.device('cpu') to map your "
            "storages to the CPU."
        )
    devices.instead_of_cuda()
    return storage


# Priority, what tags a storage that is to be saved, what brings one back.
_package_registry: list[tuple[int, Callable[[Any], str | None], Callable[[Any, str], Any]]] = [
    (10, _on_cpu, _to_cpu),
    (20, lambda storage: None, _to_cuda),
]
_own = len(_package_registry)


def register_package(
    priority: int, tagger: Callable[[Any], str | None], deserializer: Callable[[Any, str], Any]
) -> None:
    """Have storages of another kind saved with a tag, and brought back by it.

    priority: those with lower ones are asked first, the CPU has 10; tagger: of a storage, its tag or None; deserializer: of a
    storage on the CPU and a tag, the storage to use or None.
    """
    _package_registry.append((priority, tagger, deserializer))
    _package_registry.sort(key=lambda entry: entry[0])


def others() -> bool:
    """Whether anything but the CPU is known."""
    return len(_package_registry) > _own


def location_tag(storage: object) -> str:
    """The tag that a storage is saved with: "cpu", unless a package knows better."""
    for _, tagger, _ in _package_registry:
        found = tagger(storage)
        if found:
            return found
    raise RuntimeError(f"don't know how to determine data location of {type(storage).__name__}")


def default_restore_location(storage: object, location: str) -> Any:
    """The storage to use for one on the CPU that was saved with a tag.  Raises RuntimeError for a tag that nobody knows."""
    for _, _, deserializer in _package_registry:
        found = deserializer(storage, location)
        if found is not None:
            return found
    kind = "torch.storage.UntypedStorage" if isinstance(storage, Storage) else type(storage).__name__
    raise RuntimeError(f"don't know how to restore data location of {kind} (tagged with {location}): use map_location")
