"""Names that packages import beside those of PyTorch's pages."""

import subprocess
import sys

import numpy as np
import pytest

import rushlight as torch
from rushlight.utils.data._utils.collate import np_str_obj_array_pattern
from rushlight.utils.data._utils.worker import _generate_state


def test_types_of_torchscript_can_be_named() -> None:
    assert not isinstance(torch.ones(1), torch.TensorType)
    with pytest.raises(NotImplementedError, match=r"torch\.ListType: TorchScript compiles"):
        torch.ListType()


def test_modules_and_constants() -> None:
    from rushlight import serialization

    assert serialization.DEFAULT_PROTOCOL == 2 and torch.functional.einsum is torch.einsum
    assert _generate_state(1, 2) == [307626447, 1538850434, 3092219749, 3926071173]  # as in PyTorch
    assert np_str_obj_array_pattern.search(np.array(["a"]).dtype.str) and not np_str_obj_array_pattern.search(
        np.ones(1).dtype.str
    )


def test_questions_about_vmap() -> None:
    code = ("from rushlight.compat import imports; imports.install(); import torch\n"
            "from torch._C._functorch import is_batchedtensor, _add_batch_dim\n"
            "assert torch._C._functorch.is_batchedtensor is is_batchedtensor and not is_batchedtensor(torch.ones(1))\n"
            "torch.func.vmap(lambda x: print(is_batchedtensor(x)) or x)(torch.ones(2))\n"
            "try:\n    _add_batch_dim()\nexcept NotImplementedError as e:\n    print(e)")  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.startswith("True\n") and "use torch.func.vmap" in done.stdout, done.stderr


def test_overrides_of_einsum_get_operands_one_by_one() -> None:
    class Told:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return len(args)

    assert torch.einsum("i,i->", [Told(), torch.ones(1)]) == 3 and torch.einsum("i,i->", Told(), Told()) == 3
