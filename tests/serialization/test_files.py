"""save and load: what comes back, what stays shared, and what happens when something goes wrong."""

from __future__ import annotations

import errno
import io
import os
import pickle
import re
import stat
import sys
import zipfile
from collections import Counter, OrderedDict, defaultdict
from pathlib import Path

import numpy as np
import pytest

import rushlight as torch
from rushlight.serialization import archive
from rushlight.serialization.atomic import replacing_path
from rushlight.tensor import wrap

DTYPES = [
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.complex64,
    torch.complex128,
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.uint16,
    torch.uint32,
    torch.uint64,
    torch.bool,
]


def through(obj, **options):
    buffer = io.BytesIO()
    torch.save(obj, buffer)
    buffer.seek(0)
    return torch.load(buffer, **options)


def tensor(values, dtype=torch.float32):
    return wrap(np.array(values, dtype.numpy))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("mmap", [False, True])
def test_every_dtype(dtype, mmap, tmp_path):
    x = tensor([[1, 0, 2], [3, 1, 1]], dtype)
    torch.save([x, x._array.T.base is None, wrap(x._array.T)], tmp_path / "x.pt")
    y, _, transposed = torch.load(tmp_path / "x.pt", mmap=mmap)
    assert y.dtype is dtype
    assert np.array_equal(y._array, x._array)
    assert transposed.shape == (3, 2) and np.array_equal(transposed._array, x._array.T)


def test_plain_values():
    values = {
        "none": None,
        "bools": [True, False],
        "ints": (0, 1, -1, 255, 65536, 2**40, -(2**70)),
        "floats": [0.5, float("inf")],
        "text": "grüße",
        "bytes": b"\x00\xff",
        "sets": {1, 2},
        "frozen": frozenset([3]),
        "complex": 1 + 2j,
        "size": torch.Size([2, 3]),
        "dtype": torch.float32,
        "device": torch.device("cpu"),
        "ordered": OrderedDict(b=1, a=2),
        "counter": Counter("aab"),
        "nested": {"a": [{"b": ()}]},
        "bytearray": bytearray(b"xy"),
        "slice": slice(1, 2, 3),
    }
    again = through(values)
    assert again == values
    assert type(again["size"]) is torch.Size
    assert again["dtype"] is torch.float32


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_every_protocol(protocol):
    buffer = io.BytesIO()
    torch.save(
        {"a": tensor([1.0]), "b": {"c": [b"x", {1}, "y"]}, "d": defaultdict(list, x=[1])}, buffer, pickle, protocol
    )
    buffer.seek(0)
    again = torch.load(buffer)
    assert again["b"] == {"c": [b"x", {1}, "y"]}
    assert again["d"] == {"x": [1]}
    assert again["a"]._array.tolist() == [1.0]


def test_no_elements_no_dimensions_and_gradients():
    scalar, empty, leaf = tensor(2.5), tensor(np.zeros((0, 3))), tensor([1.0])
    leaf.requires_grad_()
    leaf.note = "kept"
    a, b, c = through([scalar, empty, leaf])
    assert a.shape == () and a._array == 2.5
    assert b.shape == (0, 3)
    assert c.requires_grad and c.is_leaf and c.note == "kept"


def test_parameters():
    p = torch.nn.Parameter(tensor([1.0, 2.0]))
    frozen = torch.nn.Parameter(tensor([1.0]), requires_grad=False)
    p.tag = {"a": 1}
    q, again = through([p, frozen])
    assert type(q) is torch.nn.Parameter and q.requires_grad and q.tag == {"a": 1}
    assert type(again) is torch.nn.Parameter and not again.requires_grad


@pytest.mark.parametrize("mmap", [False, True])
def test_shared_memory_stays_shared(mmap, tmp_path):
    base = tensor(np.arange(12.0).reshape(3, 4))
    torch.save({"base": base, "row": wrap(base._array[1]), "column": wrap(base._array[:, 2])}, tmp_path / "x.pt")
    again = torch.load(tmp_path / "x.pt", mmap=mmap)
    again["row"]._array[2] = 100
    assert again["base"]._array[1, 2] == 100
    assert again["column"]._array[1] == 100
    again["row"]._bump_version()
    assert again["base"]._version == again["column"]._version == 1


def test_mapped_files_are_not_written_to(tmp_path):
    torch.save(tensor([1.0, 2.0]), tmp_path / "x.pt")
    before = (tmp_path / "x.pt").read_bytes()
    x = torch.load(tmp_path / "x.pt", mmap=True)
    x._array[0] = 5
    assert (tmp_path / "x.pt").read_bytes() == before
    assert x._array.tolist() == [5.0, 2.0]


def test_a_view_brings_its_storage_once():
    big = tensor(np.zeros(100_000))
    buffer = io.BytesIO()
    torch.save([wrap(big._array[:3]), wrap(big._array[3:6]), big], buffer)
    assert 400_000 < buffer.tell() < 405_000


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6.0)[::-1],
        np.arange(12.0).reshape(3, 4)[::2, ::-1],
        np.broadcast_to(np.arange(3.0), (4, 3)),
        np.lib.stride_tricks.sliding_window_view(np.arange(6.0), 3),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.frombuffer(b"\x01" * 16, np.uint8)[3:11],
        np.arange(6).astype(">f8").astype("=f8")[1::2],
    ],
)
def test_unusual_layouts(array):
    again = through(wrap(array))
    assert np.array_equal(again._array, array)


def test_storages_start_at_multiples_of_64_bytes(tmp_path):
    torch.save([tensor([float(i)]) for i in range(5)], tmp_path / "some name.pt")
    with open(tmp_path / "some name.pt", "rb") as file:
        reader = archive.ArchiveReader(file, "x", mapped=True)
        starts = [reader.start(reader.info(f"data/{i}")) for i in range(5)]
    assert reader.folder == "some name"
    assert all(start % 64 == 0 for start in starts)


def test_a_module_and_its_optimizer_go_on(tmp_path):
    net = torch.nn.Linear(3, 2)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
    net.weight.grad, net.bias.grad = torch.ones(2, 3), torch.ones(2)
    optimizer.step()
    torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict()}, tmp_path / "c.pt")
    kept = torch.load(tmp_path / "c.pt")
    again = torch.nn.Linear(3, 2)
    again.load_state_dict(kept["net"])
    other = torch.optim.Adam(again.parameters())
    other.load_state_dict(kept["optimizer"])
    again.weight.grad, again.bias.grad = torch.ones(2, 3), torch.ones(2)
    for o in (optimizer, other):
        o.step()
    assert np.array_equal(net.weight._array, again.weight._array)


def test_whole_modules_need_trust(tmp_path):
    torch.save(torch.nn.Linear(3, 2), tmp_path / "m.pt")
    with pytest.raises(pickle.UnpicklingError, match=r"Linear.*add_safe_globals"):
        torch.load(tmp_path / "m.pt")
    net = torch.load(tmp_path / "m.pt", weights_only=False)
    assert type(net) is torch.nn.Linear and net.weight.requires_grad


# Where things go wrong -----------------------------------------------------------------------------


class Unpicklable:
    def __reduce__(self):
        raise ValueError("no")


class Full(io.RawIOBase):
    """A file on a full disk."""


def test_a_failed_save_leaves_the_old_file(tmp_path):
    path = tmp_path / "x.pt"
    torch.save(tensor([1.0]), path)
    with pytest.raises(ValueError, match="no") as caught:
        torch.save([tensor([2.0]), Unpicklable()], path)
    notes = caught.value.__notes__  # of pickle, too, from Python 3.14 on
    assert any("unchanged" in note for note in notes)
    assert torch.load(path)._array.tolist() == [1.0]
    assert os.listdir(tmp_path) == ["x.pt"]


def test_a_full_disk_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "x.pt"
    torch.save(tensor([1.0]), path)

    def write(self, name, data):
        if name.startswith("data/"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        original(self, name, data)

    original = archive.ArchiveWriter.write
    monkeypatch.setattr(archive.ArchiveWriter, "write", write)
    with pytest.raises(OSError, match="No space left"):
        torch.save(tensor(np.zeros(1000)), path)
    monkeypatch.undo()
    assert torch.load(path)._array.tolist() == [1.0]
    assert os.listdir(tmp_path) == ["x.pt"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_devices_are_written_to_directly():
    with pytest.raises(OSError, match="No space left"):
        torch.save(tensor([1.0]), "/dev/full")


def test_links_and_permissions_stay(tmp_path):
    real, link = tmp_path / "real.pt", tmp_path / "link.pt"
    torch.save(tensor([1.0]), real)
    real.chmod(0o640)
    link.symlink_to(real)
    torch.save(tensor([2.0]), link)
    assert link.is_symlink()
    assert torch.load(real)._array.tolist() == [2.0]
    assert stat.S_IMODE(real.stat().st_mode) == 0o640


def test_missing_and_empty_files(tmp_path):
    with pytest.raises(FileNotFoundError):
        torch.load(tmp_path / "none.pt")
    (tmp_path / "empty.pt").touch()
    with pytest.raises(EOFError, match=r"empty\.pt.* is empty"):
        torch.load(tmp_path / "empty.pt")
    with pytest.raises(IsADirectoryError):
        torch.load(tmp_path)


def test_every_truncation_is_noticed(tmp_path):
    torch.save({"a": tensor([1.0, 2.0]), "b": 3}, tmp_path / "x.pt")
    whole = (tmp_path / "x.pt").read_bytes()
    for length in [*range(1, len(whole), 37), len(whole) - 1]:
        with pytest.raises((RuntimeError, EOFError, pickle.UnpicklingError)):
            torch.load(io.BytesIO(whole[:length]))


@pytest.mark.parametrize("mmap", [False, True])
def test_flipped_bits_are_noticed_or_harmless(mmap, tmp_path):
    torch.save({"a": tensor(np.arange(50.0)), "b": [1, "two", (3.0,)]}, tmp_path / "x.pt")
    whole = (tmp_path / "x.pt").read_bytes()
    for at in range(0, len(whole), 11):
        damaged = bytearray(whole)
        damaged[at] ^= 0x15
        (tmp_path / "y.pt").write_bytes(damaged)
        try:
            torch.load(tmp_path / "y.pt", mmap=mmap)
        except (RuntimeError, EOFError, pickle.UnpicklingError):
            pass


def test_changed_elements_are_noticed(tmp_path):
    torch.save(tensor(np.arange(50.0)), tmp_path / "x.pt")
    whole = bytearray((tmp_path / "x.pt").read_bytes())
    at = whole.find(np.arange(50.0, dtype=np.float32).tobytes())
    whole[at + 100] ^= 1
    with pytest.raises(RuntimeError, match=r"is damaged.*data/0.*CRC"):
        torch.load(io.BytesIO(whole))


def test_what_is_no_file_of_tensors(tmp_path):
    for weights_only in (True, False):
        with pytest.raises(pickle.UnpicklingError, match=r"no file that torch\.save wrote"):
            torch.load(io.BytesIO(b"hello, this is text"), weights_only=weights_only)
    with pytest.raises(RuntimeError, match="is a pickle, but no file"):
        torch.load(io.BytesIO(pickle.dumps({"a": 1})))
    with zipfile.ZipFile(tmp_path / "z.zip", "w") as z:
        z.writestr("x/readme", "hello")
    with pytest.raises(RuntimeError, match=r"holds no data\.pkl"):
        torch.load(tmp_path / "z.zip")
    with zipfile.ZipFile(tmp_path / "s.pt", "w") as z:
        z.writestr("x/data.pkl", "")
        z.writestr("x/constants.pkl", "")
    with pytest.raises(RuntimeError, match="TorchScript"):
        torch.load(tmp_path / "s.pt")
    with pytest.raises(RuntimeError, match="tar file"):
        torch.load(io.BytesIO(b"x" * 257 + b"ustar" + b"x" * 100))


def test_arguments():
    with pytest.raises(AttributeError, match="write"):
        torch.save(1, 3)
    with pytest.raises(AttributeError, match="read"):
        torch.load(3)
    with pytest.raises(AttributeError, match="pickle_module"):
        torch.save(1, io.BytesIO(), pickle_module=sys)
    with pytest.raises(AttributeError, match="pickle_module"):
        torch.load(io.BytesIO(), pickle_module=sys)
    with torch.serialization.skip_data(), pytest.raises(RuntimeError, match="skip_data"):
        torch.save(1, io.BytesIO(), _use_new_zipfile_serialization=False)
    with pytest.raises(ValueError, match="mmap"):
        torch.load(io.BytesIO(b"x"), mmap=True)
    with pytest.raises(TypeError, match="map_location"):
        through(1, map_location=3)
    with pytest.raises(RuntimeError, match="view the same data as different types"):
        x = np.zeros(4, np.float32)
        through([wrap(x), wrap(x.view(np.int32))])


def at_location(location):
    """A file whose storage is said to lie elsewhere."""
    buffer = io.BytesIO()
    torch.save(tensor([1.0, 2.0]), buffer)
    return io.BytesIO(buffer.getvalue()), location


@pytest.fixture
def from_gpu(tmp_path):
    torch.save(tensor([1.0, 2.0]), tmp_path / "c.pt")
    with zipfile.ZipFile(tmp_path / "c.pt") as old, zipfile.ZipFile(tmp_path / "gpu.pt", "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name.endswith("data.pkl"):
                data = data.replace(b"X\x03\x00\x00\x00cpu", b"X\x06\x00\x00\x00cuda:0")
            new.writestr(name, data)
    return tmp_path / "gpu.pt"


def test_map_location(from_gpu):
    with pytest.raises(RuntimeError, match=r"CUDA device.*map_location=torch\.device\('cpu'\)"):
        torch.load(from_gpu)
    seen = []

    def choose(storage, location):
        seen.append((storage.nbytes(), location))
        return storage

    for place in ("cpu", torch.device("cpu"), {"cuda:0": "cpu"}, choose):
        assert torch.load(from_gpu, map_location=place)._array.tolist() == [1.0, 2.0]
    assert seen == [(8, "cuda:0")]
    with pytest.raises(RuntimeError, match="CUDA"):
        torch.load(from_gpu, map_location=lambda storage, location: None)


def test_large_entries_have_zip64_fields(tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "_LARGE", 1000)
    torch.save([tensor(np.arange(1000.0)), tensor([1.0])], tmp_path / "x.pt")
    for mmap in (False, True):
        a, b = torch.load(tmp_path / "x.pt", mmap=mmap)
        assert a._array[-1] == 999 and b._array.tolist() == [1.0]


def test_memory_of_saving_is_not_that_of_the_tensors(tmp_path):
    import tracemalloc

    x = tensor(np.ones(4_000_000))
    tracemalloc.start()
    torch.save(x, tmp_path / "x.pt")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1_000_000
    tracemalloc.start()
    y = torch.load(tmp_path / "x.pt")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < y._array.nbytes + 10_000_000


def test_paths_of_every_kind(tmp_path):
    for path in (
        tmp_path / "a.pt",
        str(tmp_path / "b.pt"),
        os.fsencode(tmp_path / "c.pt").decode(),
        Path(tmp_path / "ü"),
    ):
        torch.save(1, path)
        assert torch.load(path) == 1


def test_where_no_file_can_be_written(tmp_path):
    x = tensor(np.ones(2))
    missing = tmp_path / "none"
    with pytest.raises(RuntimeError, match=rf"^Parent directory {re.escape(str(missing))} does not exist\.$"):
        torch.save(x, missing / "x.pt")
    for path in (tmp_path, ""):
        with pytest.raises(RuntimeError, match="is a directory: give the name of a file in it"):
            torch.save(x, path)
    assert not list(tmp_path.iterdir())


def test_a_pipe_is_not_opened_before_its_time(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with replacing_path(tmp_path / "pipe") as name:  # to open it would wait for somebody who reads
        assert name == str(tmp_path / "pipe")


def test_an_error_of_the_system_names_the_path_that_was_given(tmp_path, monkeypatch):
    def refuse(path, *_):
        raise PermissionError(errno.EACCES, "Permission denied", path)

    monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(PermissionError, match="Permission denied") as caught:
        torch.save(tensor(np.ones(2)), tmp_path / "x.pt")
    assert caught.value.filename == str(tmp_path / "x.pt")


def test_of_two_objects_saved_to_one_file_the_second_is_not_taken_for_the_first():
    file = io.BytesIO()
    torch.save(torch.zeros(1), file)
    second = file.tell()
    torch.save(torch.ones(1), file)
    file.seek(0)
    with pytest.raises(RuntimeError, match="holds several archives"):
        torch.load(file)
    file.seek(second)
    assert torch.load(file).tolist() == [1.0]
    behind = io.BytesIO()
    behind.write(b"a header")
    torch.save(torch.ones(2), behind)
    behind.seek(8)
    assert torch.load(behind).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("old", [False, True])
def test_shapes_alone_are_read_onto_the_device_meta(tmp_path, old):
    lib = pytest.importorskip("torch") if old else torch  # of the old format files are read, and not written
    net = lib.nn.Sequential(lib.nn.Linear(3, 4), lib.nn.BatchNorm1d(4))
    x = lib.arange(6.0).view(2, 3)
    path = tmp_path / "m.pt"
    made = {**net.state_dict(), "t": x.t(), "half": x.bfloat16(), "none": x[:0], "p": net[0].bias}
    lib.save(made, path, **({"_use_new_zipfile_serialization": False} if old else {}))
    found = torch.load(path, map_location="meta")
    assert all(value.is_meta for value in found.values())
    described = [(v.shape, v.dtype, v.stride()) for v in torch.load(path).values()]
    assert [(v.shape, v.dtype, v.stride()) for v in found.values()] == described
    assert isinstance(found["p"], torch.nn.Parameter) and found["p"].requires_grad
    with torch.device("meta"):
        empty = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    empty.load_state_dict({key: value for key, value in found.items() if "." in key}, assign=True)
    assert empty[0].weight.is_meta
    assert torch.load(path, map_location={"cpu": "meta"})["t"].is_meta


def test_an_order_of_bytes_that_nobody_knows_is_refused():
    buffer, other = io.BytesIO(), io.BytesIO()
    torch.save(torch.ones(2), buffer)
    with zipfile.ZipFile(buffer) as old, zipfile.ZipFile(other, "w") as new:
        for name in old.namelist():
            new.writestr(name, b"middle" if name.endswith("/byteorder") else old.read(name))
    other.seek(0)
    with pytest.raises(ValueError, match="Unknown endianness type: middle"):
        torch.load(other)
