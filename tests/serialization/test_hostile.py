"""Files that want to run code, or to break things: refused, with an error that says why."""

from __future__ import annotations

import builtins
import io
import os
import pickle
import struct
import subprocess
import zipfile
from collections import OrderedDict
from pathlib import Path

import pytest

import rushlight as torch
from rushlight.serialization import names


def file_of(data: bytes, storages: dict[str, bytes] | None = None) -> io.BytesIO:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as z:
        z.writestr("x/data.pkl", data)
        for key, content in (storages or {}).items():
            z.writestr(f"x/data/{key}", content)
        z.writestr("x/version", "3\n")
    buffer.seek(0)
    return buffer


class Call:
    def __init__(self, function, *args):
        self.parts = function, args

    def __reduce__(self):
        return self.parts


@pytest.mark.parametrize(
    "call",
    [
        Call(os.system, "echo hostile"),
        Call(eval, "1 + 1"),
        Call(exec, "import os"),
        Call(builtins.__import__, "os"),
        Call(getattr, 1, "real"),
        Call(subprocess.check_output, ["id"]),
        Call(open, "/etc/passwd"),
        Call(torch.load, "x"),
        Call(pickle.loads, b"N."),
        Call(type, "X", (), {}),
        Call(print, "hostile"),
        Call(map, str, [1]),
    ],
)
@pytest.mark.parametrize("protocol", [2, 4])
def test_calls_are_refused(call, protocol):
    with pytest.raises(pickle.UnpicklingError, match=r"was not an allowed global by default|is blocked"):
        torch.load(file_of(pickle.dumps({"a": call}, protocol)))


GLOBAL_ORDERED = b"ccollections\nOrderedDict\n"
REBUILD = b"ctorch._utils\n_rebuild_tensor_v2\n"
PARAMETER = b"ctorch._utils\n_rebuild_parameter\n"


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (b"\x82\x01.", "instruction"),  # a registered extension
        (b"(cos\nsystem\no.", "GLOBAL os.system whose module os is blocked|Unsupported operand"),
        (b"(S'x'\nios\nsystem\n.", "instruction"),
        (b"P1\n.", "instruction"),
        (b"cos\nsystem\n.", "os.system"),
        (b"\x8c\x02os\x8c\x06system\x93.", "os.system"),
        (GLOBAL_ORDERED + b"}X\x01\x00\x00\x00aK\x01sb.", "the file sets the state of a"),  # attributes of a class
        (REBUILD + b"N}X\x0c\x00\x00\x00__defaults__Ns\x86b.", "the file sets the state of a"),  # and of a function
        (PARAMETER + b"N}X\x03\x00\x00\x00fooNs\x86b.", "the file sets the state of a"),
        (GLOBAL_ORDERED + b")R}X\x09\x00\x00\x00__class__Nsb.", "no attribute is called"),
        (b"]}X\x01\x00\x00\x00aNsb.", "the file sets the state of a"),
        (b"K\x01)R.", "must not be called"),
        (b"X\x01\x00\x00\x00a)R.", "must not be called"),
        (b"ctorch\nFloatStorage\n)R.", "must not be called"),
        (b"ctorch\nfloat32\n)R.", "damaged"),
        (GLOBAL_ORDERED + b"K\x01R.", "no tuple"),
        (b"K\x01)\x81.", "must not be called"),
        (b".", "damaged"),
        (b"", "ends early"),
        (b"q\x00.", "damaged"),
        (b"h\x07.", "damaged"),
        (b"K\x01K\x02a.", "Can only append to lists"),
        (b"K\x01K\x02K\x03s.", "Can only SETITEM for dict"),
        (b"t.", "damaged"),
        (b"\x87.", "stack is too short"),
        (b"\x8d" + struct.pack("<Q", 1 << 62) + b".", "more than there can be"),
        (b"\x8b\xff\xff\xff\x7f.", "integer of"),
        (b"cbuiltins\nbytearray\n(J\x00\x00\x00\x7ftR.", None),  # of no length that the file chooses
        (b"cbuiltins\nset\n(]]atR.", "damaged"),
        (b"cbuiltins\nlist\n(cbuiltins\nrange\nJ\x00\x00\x00\x7f\x85RtR.", "range"),  # neither is a list of many
        (b"cbuiltins\nint\nX\x01\x00\x00\x009\x85R.", "must not be called"),
        (b"cbuiltins\nbytes\nJ\x00\x00\x00\x7f\x85R.", "bytes"),
        (b"ccollections\ndefaultdict\nccollections\nCounter\n\x85R.", "is not allowed"),
        (b"c_codecs\nencode\nX\x01\x00\x00\x00ax\x05\x00\x00\x00rot13\x86R.", "."),
        (b"K\x01Q.", "unknown form"),
        (b"(X\x07\x00\x00\x00storageK\x01K\x02K\x03K\x04tQ.", "unknown form"),
    ],
)
def test_instructions(code, message):
    if message is None:
        assert torch.load(file_of(code)) == bytearray()
        return
    with pytest.raises(pickle.UnpicklingError, match=message):
        torch.load(file_of(code))


def pickled_tensor(numel, offset, size, stride, kind=b"FloatStorage", extra=b""):
    """The pickle of one tensor, from its parts."""

    def ints(values):
        return b"(" + b"".join(b"J" + struct.pack("<i", v) for v in values) + b"t"

    storage = b"(X\x07\x00\x00\x00storagectorch\n" + kind + b"\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpu"
    storage += b"J" + struct.pack("<i", numel) + b"tQ"
    number = b"J" + struct.pack("<i", offset)
    return (
        REBUILD
        + b"("
        + storage
        + number
        + ints(size)
        + ints(stride)
        + b"\x89"
        + GLOBAL_ORDERED
        + b")Rt"
        + b"R"
        + extra
        + b"."
    )


def test_the_parts_make_a_tensor():
    x = torch.load(file_of(pickled_tensor(4, 1, [3], [1]), {"0": struct.pack("<4f", 1, 2, 3, 4)}))
    assert x._array.tolist() == [2.0, 3.0, 4.0]


@pytest.mark.parametrize(
    ("offset", "size", "stride"),
    [(0, [5], [1]), (2, [3], [1]), (0, [2, 3], [2, 1]), (-1, [1], [1]), (0, [-1], [1]), (0, [2], [-1]),
     (0, [2], [1, 1]),
     (2**31 - 1, [1], [1]), (0, [2**31 - 1, 2**31 - 1], [1, 1]), (0, [2], [2**31 - 1])],
)  # fmt: skip
def test_tensors_beyond_their_storage(offset, size, stride):
    with pytest.raises(pickle.UnpicklingError, match=r"does not fit|no tensor has"):
        torch.load(file_of(pickled_tensor(4, offset, size, stride), {"0": b"\x00" * 16}))


def test_storages_that_are_not_there_or_of_another_size():
    with pytest.raises(RuntimeError, match=r"'data/0' is missing"):
        torch.load(file_of(pickled_tensor(4, 0, [4], [1])))
    with pytest.raises(RuntimeError, match="has 12 bytes instead of 16"):
        torch.load(file_of(pickled_tensor(4, 0, [4], [1]), {"0": b"\x00" * 12}))
    with pytest.raises(pickle.UnpicklingError, match="FloatyStorage"):
        torch.load(file_of(pickled_tensor(4, 0, [4], [1], b"FloatyStorage"), {"0": b"\x00" * 16}))


def test_attributes_of_tensors_do_not_reach_the_engine():
    state = pickle.dumps({"_grad": 1}, 2)[2:-1]
    code = b"ctorch._utils\n_rebuild_parameter_with_state\n(" + pickled_tensor(4, 0, [4], [1])[:-1]
    code += b"\x88" + GLOBAL_ORDERED + b")R" + state + b"tR."
    with pytest.raises(pickle.UnpicklingError, match="'_grad'"):
        torch.load(file_of(code, {"0": b"\x00" * 16}))


def test_unsupported_tensors_are_named():
    with pytest.raises(pickle.UnpicklingError, match="a quantized tensor is not supported"):
        torch.load(file_of(b"ctorch._utils\n_rebuild_qtensor\n."))


def test_places_of_sparse_tensors_are_checked():
    good = torch.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (2,))
    good._sizes = (1,)  # as who wants to read beside the memory would write it
    file = io.BytesIO()
    torch.save(good, file)
    file.seek(0)
    with pytest.raises(pickle.UnpicklingError, match="found index 1"):
        torch.load(file)


class Point:
    def __init__(self, x):
        self.x = x


class Slotted:
    __slots__ = ("x",)


class Careful:
    def __setstate__(self, state):
        self.state = state


@pytest.fixture(autouse=True)
def no_user_globals():
    yield
    torch.serialization.clear_safe_globals()


def test_what_the_user_allows():
    file = io.BytesIO()
    slotted, careful = Slotted(), Careful()
    slotted.x, careful.y = 2, 3
    torch.save([Point(1), slotted, careful], file)

    def load():
        file.seek(0)
        return torch.load(file)

    with pytest.raises(pickle.UnpicklingError, match=r"Point.*add_safe_globals"):
        load()
    file.seek(0)
    unsafe = torch.serialization.get_unsafe_globals_in_checkpoint(file)
    assert [name.rsplit(".", 1)[1] for name in unsafe if "copyreg" not in name] == ["Point", "Slotted", "Careful"]
    with torch.serialization.safe_globals([Point, Slotted, Careful, (object.__reduce_ex__, "never")]):
        a, b, c = load()
    assert (a.x, b.x, c.state) == (1, 2, {"y": 3})
    assert torch.serialization.get_safe_globals() == []
    with pytest.raises(pickle.UnpicklingError):
        load()
    torch.serialization.add_safe_globals([(Point, f"{Point.__module__}.Point"), Slotted, Careful])
    torch.serialization.add_safe_globals([Slotted])
    assert len(torch.serialization.get_safe_globals()) == 3
    assert load()[0].x == 1


def test_trusted_files_run_what_they_say():
    assert torch.load(file_of(pickle.dumps(Call(eval, "40 + 2"))), weights_only=False) == 42


def test_a_bare_pickle_runs_nothing_whatever_is_asked(tmp_path: Path) -> None:
    data = pickle.dumps(Call(eval, f"open({str(tmp_path / 'ran')!r}, 'w')"))
    with pytest.raises((RuntimeError, pickle.UnpicklingError)):
        torch.load(io.BytesIO(data), weights_only=False)
    assert not (tmp_path / "ran").exists()


def test_trusted_files_of_torch_name_what_is_here():
    found = torch.load(file_of(b"ctorch.nn.modules.linear\nLinear\n."), weights_only=False)
    assert found is torch.nn.Linear
    with pytest.raises(pickle.UnpicklingError, match=r"torch\.nonsense\.Thing, which rushlight does not have"):
        torch.load(file_of(b"ctorch.nonsense\nThing\n."), weights_only=False)


def test_nothing_allowed_by_default_is_code():
    """The list holds types, dtypes and the constructors of rebuild.py: nothing that reads files or runs text."""
    from rushlight.serialization import rebuild

    for name, value in names.default_table().items():
        if callable(value) and not isinstance(value, type):
            assert value.__module__ in (names.__name__, rebuild.__name__), name
    assert isinstance(names.lookup("collections", "OrderedDict")(), OrderedDict)
