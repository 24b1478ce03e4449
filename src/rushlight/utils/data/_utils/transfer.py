"""Batches between processes: pickled, but large arrays through memory that both share.

The memory belongs to no name: its descriptor goes over the socket, so nothing is left behind when either side dies.
"""

from __future__ import annotations

import io
import mmap
import os
import pickle
import sys
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from rushlight.basics.arrays import Array
from rushlight.ops.create.shared import new_descriptor
from rushlight.tensor import Tensor, wrap

LARGE = 1 << 14  # bytes from which an array goes through shared memory
ALIGNMENT = 64
CAN_SHARE = sys.platform != "win32"


class _Slot:
    """Stands for an array in shared memory."""

    def __init__(self, start: int, shape: tuple[int, ...], dtype: np.dtype[Any]):
        self.start, self.shape, self.dtype = start, shape, dtype

    def array(self, memory: Any) -> Array:
        """The array."""
        return np.ndarray(self.shape, self.dtype, memory, self.start)


def _tensor(array: Array, requires_grad: bool) -> Tensor:
    t = wrap(array)
    return t.requires_grad_() if requires_grad else t


class _Pickler(pickle.Pickler):
    """Takes large arrays out of what is pickled and gives each a place in shared memory."""

    def __init__(self, file: Any):
        super().__init__(file, 5)
        self.arrays: list[tuple[int, Any]] = []
        self.size = 0

    def persistent_id(self, obj: object) -> Any:
        """A place for a large array."""
        if type(obj) is not np.ndarray or obj.nbytes < LARGE or obj.dtype.hasobject or not CAN_SHARE:
            return None
        start = self.size
        self.arrays.append((start, obj))
        self.size = -(-(start + obj.nbytes) // ALIGNMENT) * ALIGNMENT
        return _Slot(start, obj.shape, obj.dtype)

    def reducer_override(self, obj: object) -> Any:
        """A tensor as its array."""
        if type(obj) is not Tensor:
            return NotImplemented
        if not obj.is_leaf:
            raise RuntimeError(
                "a worker cannot send a tensor computed from one that requires grad: detach() it in the dataset"
            )
        return _tensor, (obj._array, obj.requires_grad)


class _Unpickler(pickle.Unpickler):
    memory: Any = None

    def persistent_load(self, slot: Any) -> Any:
        """An array in shared memory."""
        return slot.array(self.memory)


def send(connection: Connection, value: object) -> None:
    """Send a value.  Nothing is sent when it cannot be pickled."""
    data = io.BytesIO()
    data.write(b"\0")  # whether a descriptor follows
    pickler = _Pickler(data)
    pickler.dump(value)
    with data.getbuffer() as message:
        if pickler.size:
            _send_with_memory(connection, message, pickler)
        else:
            connection.send_bytes(message)


def _send_with_memory(connection: Connection, message: Any, pickler: _Pickler) -> None:
    """Send a message and the descriptor of memory that holds the arrays."""
    from multiprocessing import reduction

    message[0] = 1
    descriptor = new_descriptor(pickler.size)
    try:
        with mmap.mmap(descriptor, pickler.size) as memory:
            for start, array in pickler.arrays:
                np.ndarray(array.shape, array.dtype, memory, start)[...] = array
        connection.send_bytes(message)
        reduction.send_handle(connection, descriptor, os.getppid())
    finally:
        os.close(descriptor)


def receive(connection: Connection) -> Any:
    """Receive a value.  Raises EOFError or OSError when the other side is gone."""
    from multiprocessing import reduction

    data = io.BytesIO(connection.recv_bytes())
    unpickler = _Unpickler(data)
    if data.read(1) == b"\1":
        descriptor = reduction.recv_handle(connection)
        try:
            unpickler.memory = mmap.mmap(descriptor, 0)
        finally:
            os.close(descriptor)
    return unpickler.load()
