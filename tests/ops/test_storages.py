"""Storages as bytes: of files, parts of them, and tensors on them."""

from pathlib import Path

import numpy as np
import pytest

import rushlight as torch

Storage = torch.UntypedStorage


def test_parts_of_a_file_become_tensors_without_a_copy(tmp_path: Path) -> None:
    path = tmp_path / "weights.bin"
    numbers = np.arange(6, dtype=np.float32)
    path.write_bytes(b"head" + numbers.tobytes())
    storage = Storage.from_file(str(path), shared=False, nbytes=28)
    assert storage.nbytes() == 28 and storage.untyped() is storage and bytes(storage.tolist()[:4]) == b"head"
    part = storage[4:]
    t = torch.asarray(part, dtype=torch.uint8).view(torch.float32).reshape(2, 3)
    assert t.tolist() == [[0, 1, 2], [3, 4, 5]] and part.nbytes() == 24
    t[0, 0] = 7
    assert torch.asarray(part, dtype=torch.uint8)[:4].view(torch.float32).item() == 7
    assert path.read_bytes()[4:8] == numbers[:1].tobytes()  # changes stay here


def test_shared_files_are_written_to(tmp_path: Path) -> None:
    path = tmp_path / "shared.bin"
    storage = Storage.from_file(path, shared=True, nbytes=8)
    torch.asarray(storage, dtype=torch.uint8).fill_(3)
    storage[0] = 9
    assert path.read_bytes() == bytes([9, *[3] * 7])


def test_files_that_are_not_there_or_too_short(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="nowhere"):
        Storage.from_file(tmp_path / "nowhere")
    (tmp_path / "short").write_bytes(b"abc")
    with pytest.raises(RuntimeError, match="has 3 bytes, and 9 were asked for"):
        Storage.from_file(tmp_path / "short", nbytes=9)
    (tmp_path / "empty").touch()
    assert Storage.from_file(tmp_path / "empty").nbytes() == 0


def test_bytes_of_a_tensor() -> None:
    x = torch.tensor([1, 256], dtype=torch.int16)
    storage = x.untyped_storage()
    assert storage.tolist() == [1, 0, 0, 1] and storage[3] == 1 and storage[1:3].tolist() == [0, 0]
    storage[0] = 5
    storage[2:].fill_(1)
    assert x.tolist() == [5, 257]
    assert storage.fill_(0) is storage and x.tolist() == [0, 0] and storage[2:2].nbytes() == 0
    with pytest.raises(RuntimeError, match="only a step of 1"):
        storage[::2]
    part = x.view(2, 1).t().untyped_storage()
    assert part.data_ptr() == storage.data_ptr()


def test_bytes_lie_in_a_storage_as_they_lie_in_memory() -> None:
    x = torch.arange(24, dtype=torch.uint8).reshape(2, 3, 2, 2)
    t = x.permute(0, 2, 3, 1) * 1  # with axes in an order that is neither C nor Fortran
    storage = t.untyped_storage()
    assert t.stride() == (12, 2, 1, 4) and storage.tolist() == list(range(24)) and storage[4:7].tolist() == [4, 5, 6]
    storage[1] = 99
    assert t[0, 0, 1, 0].item() == 99
    storage.fill_(3)
    assert t.unique().tolist() == [3]
