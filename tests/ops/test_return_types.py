"""The types of results with names are there before the first result."""

import pickle
import subprocess
import sys

import pytest

import rushlight as torch


def test_types_are_those_of_the_results() -> None:
    assert torch.return_types.linalg_qr is type(torch.linalg.qr(torch.eye(2)))
    assert torch.return_types.linalg_slogdet is type(torch.linalg.slogdet(torch.eye(2)))
    assert torch.return_types.svd_out._fields == ("U", "S", "V") and torch.return_types.sort_out._fields == (
        "values",
        "indices",
    )
    with pytest.raises(AttributeError, match=r"torch.return_types.* no attribute 'nonsense'"):
        torch.return_types.nonsense


def test_pickles_load_in_a_new_process() -> None:
    pickled = pickle.dumps(torch.linalg.qr(torch.eye(2)))
    code = f"import pickle; r = pickle.loads({pickled!r}); print(type(r).__name__, r.R.tolist())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.startswith("linalg_qr"), done.stderr


def test_a_sequence_of_another_length_is_refused() -> None:
    assert torch.return_types.max((1, 2)).indices == 2
    for given in ((1,), (1, 2, 3), torch.ones(1)):
        with pytest.raises(TypeError, match="takes a 2-sequence"):
            torch.return_types.max(given)
    assert "linalg_qr" in dir(torch.return_types)


def test_fields_are_replaced() -> None:
    found = torch.max(torch.tensor([[1.0, 2.0]]), 1)
    other = found.__replace__(values=torch.zeros(1))  # what `copy.replace` calls from Python 3.13 on
    assert type(other) is type(found) and other.values.tolist() == [0] and other.indices is found.indices
    with pytest.raises(TypeError, match=r"return_types.max has no fields value, index"):
        found.__replace__(value=0, index=1)
