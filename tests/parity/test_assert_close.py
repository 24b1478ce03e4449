"""assert_close passes and fails where PyTorch's does, with its messages."""

from __future__ import annotations

import importlib
import math
from collections import OrderedDict
from typing import Any

import numpy as np
import pytest

import rushlight

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity

CALLS = [
    "1.0,2.0",
    "1,2",
    "1,1.0",
    "1,1.0,check_dtype=False",
    "True,False",
    "1+2j,1+3j",
    "nan,nan",
    "nan,nan,equal_nan=True",
    "'a','a'",
    "'a','b'",
    "None,None",
    "None,1",
    "T([1.,2,3]),T([1.,4,5])",
    "T([1,2,3]),T([1,4,5])",
    "T([1.,2,3]),T([1.,4,5]),rtol=0,atol=0",
    "T([1,2]),T([1.,2])",
    "T([1,2]),T([1.,2.5]),check_dtype=False",
    "T([1.,2]),T([1.])",
    "T([1.,2]),T([1.,2]),rtol=1",
    "T([1.,2]),T([1.,2]),atol=1",
    "T(1.),T(2.)",
    "T(1.),2.0",
    "2.0,T(2.)",
    "T([nan]),T([nan])",
    "T([nan,1]),T([nan,1]),equal_nan=True",
    "T([float('inf')]),T([1.])",
    "T([float('inf')]),T([float('inf')])",
    "T([float('inf')]),T([-float('inf')])",
    "torch.ones(2,3),torch.ones(3,2).T",
    "torch.ones(2,3),torch.ones(3,2).T,check_stride=True",
    "[1,2],[1,3]",
    "[1,2],[1]",
    "[1,2],(1,2)",
    "{'a':1},{'a':2}",
    "{'a':1},{'b':1}",
    "{'a':1,'c':2},{'b':1}",
    "{'a':[1,{'b':T([1.])}]},{'a':[1,{'b':T([2.])}]}",
    "np.ones(2),np.ones(2)",
    "np.ones(2),np.zeros(2)",
    "np.ones(2),T([1.,1])",
    "np.ones(2),[1.,1.]",
    "[T([1.])],T([1.])",
    "np.float32(1),np.float32(2)",
    "np.float32(1),1.0",
    "torch.nn.Parameter(torch.ones(1)),torch.ones(1)",
    "torch.nn.Parameter(torch.ones(1)),torch.ones(1),allow_subclasses=False",
    "T([1.]),T([2.]),msg='hi'",
    "T([1.]),T([2.]),msg=lambda m:'H '+m",
    "T([True,False]),T([True,True])",
    "T([1+1j]),T([1+2j])",
    "torch.ones(2,2),torch.zeros(2,2)",
    "T([],dtype=torch.float32),T([])",
    "T([]),T([1.])",
    "[[1,2],[3,T([1.])]],[[1,2],[3,T([2.])]]",
    "T([1.],dtype=torch.bfloat16),T([1.01],dtype=torch.bfloat16)",
    "T([1.],dtype=torch.float16),T([1.01],dtype=torch.float16)",
    "T([1.]),T([1.00001],dtype=torch.float64),check_dtype=False",
    "T([255],dtype=torch.uint8),T([0],dtype=torch.uint8)",
    "set([1]),set([1])",
    "1.0,1.0,rtol=-1,atol=0",
    "object(),object()",
    "T([1e-9]),T([1e-10]),rtol=0,atol=0",
    "1e-9,1e-10,rtol=0,atol=0",
    "T([0.,1]),T([1.,0])",
    "T([1,2,3]),T([1,2,4]),rtol=1,atol=1",
    "[1.0,'a'],[1.0,'a']",
    "{'x':1},[1]",
    "T([2**62]),T([2**62+1])",
    "torch.ones(3), torch.ones(3)*1.1, rtol=0.01, atol=0",
    "T([nan,1.]),T([1.,nan])",
    "range(3),[0,1,2]",
    "torch.ones(1,requires_grad=True),torch.ones(1)",
    "T([1.,2.]),T([[1.,2.]])",
    "OrderedDict(a=1),{'a':1}",
    "T(1),T(1.)",
    "[], []",
    "{},{}",
    "[1,2,3],[1,5,7]",
    "T([[1.]]),T([[3.]])",
    "T([1.0]),[1.0]",
    "T([True]),T([1]),check_dtype=False",
    "[T([1.,2.]),T([3.])],[T([1.,2.]),T([4.])]",
    "[1],[1,2],msg='hi'",
    "[1.],[2.],msg=lambda m: m+'!'",
    "[1.],[2.],msg='hi'",
    "{'a':[1]},{'a':[1,2]}",
    "{'a':{'c':1}},{'a':{'b':1}}",
    "1,None",
    "float('inf'),1.0",
    "1.0,float('inf')",
    "float('inf'),float('inf')",
    "float('inf'),float('-inf')",
    "1.0,0.0",
    "1,0",
    "T(1),T(2)",
    "T(1),T(0)",
    "T(1.),T(0.)",
    "{2:1,1:5},{1:6,2:7}",
    "T([[1.,2.],[3.,4.]]),T([[1.,2.],[3.,7.]])",
    "'abc',['a','b','c']",
    "np.array([1,2]),np.array([1,3])",
    "T([1.,2.],dtype=torch.float64),T([1.,2.1],dtype=torch.float64)",
    "1.0,1.0000000001",
    "1+0j,1.0,check_dtype=False",
    "T([1.,5.,3.]),T([1.0000001,5.5,3.2]),rtol=1e-1,atol=1e-2",
]


def outcome(framework: Any, call: str) -> str:
    """What the call does in a framework: nothing, or its error."""
    names = {"torch": framework, "T": framework.tensor, "np": np, "OrderedDict": OrderedDict, "nan": math.nan}
    names["close"] = framework.testing.assert_close
    try:
        return str(eval(f"close({call})", names))
    except (AssertionError, TypeError, ValueError) as error:
        return f"{type(error).__name__}: {error}".replace("rushlight.tensor.", "torch.").replace("rushlight.", "torch.")


@pytest.mark.parametrize("call", CALLS)
def test_outcome_is_that_of_pytorch(call: str) -> None:
    assert outcome(rushlight, call) == outcome(torch, call)


OLD_CALLS = [
    "T([1.]),T([1.00005])", "T([1.]),T([1.001])", "T([1.]),T([1.00005],dtype=torch.float64)",
    "T([1.],dtype=torch.float64),T([1.000005],dtype=torch.float64)", "[1.,2.],T([1.,2.])", "1.0,T(1.0)", "1,2",
    "T([nan]),T([nan])", "T([nan]),T([nan]),equal_nan=False", "T([1]),T([1]),msg='q'", "T([1]),T([2]),msg='q'",
    "T([1.]),T([1.1]),rtol=1.", "T([1.],dtype=torch.bfloat16),T([1.01],dtype=torch.bfloat16)", "T([1+0j]),T([1+1e-5j])",
    "T([1.]),T(1.)", "T([1.],dtype=torch.float16),T([1.001],dtype=torch.float16)",
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:.*assert_allclose:FutureWarning")
@pytest.mark.parametrize("call", OLD_CALLS)
def test_assert_allclose_has_the_older_tolerances(call: str) -> None:
    results = []
    for lib in (rushlight, torch):
        try:
            eval(f"torch.testing.assert_allclose({call})", {"torch": lib, "T": lib.tensor, "nan": math.nan})
            results.append("passes")
        except (AssertionError, ValueError) as error:
            results.append(f"{type(error).__name__}: {error}")
    assert results[0] == results[1]


def test_assert_allclose_is_deprecated() -> None:
    with pytest.warns(FutureWarning, match="use torch.testing.assert_close"):
        rushlight.testing.assert_allclose(rushlight.ones(2), rushlight.ones(2))


def sparse_matrix(t: Any, csr: bool, *values: float) -> Any:
    x = t.tensor([[values[0], 0.0], [values[2], values[1]]])
    return x.to_sparse_csr() if csr else x.to_sparse()


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
@pytest.mark.parametrize("csr", [False, True])
@pytest.mark.parametrize("values", [(1.0, 2.0, 0.0), (1.0, 3.0, 0.0), (1.0, 2.0, 4.0), (0.0, 2.0, 1.0)])
def test_sparse_tensors(csr: bool, values: tuple[float, ...]) -> None:
    said = []
    for t in (torch, rushlight):
        try:
            t.testing.assert_close(sparse_matrix(t, csr, *values), sparse_matrix(t, csr, 1.0, 2.0, 0.0))
        except AssertionError as error:
            said.append(str(error).splitlines()[0])
        else:
            said.append("")
    assert said[0] == said[1]


def inner(t: Any) -> Any:
    return importlib.import_module(f"{t.__name__}.testing._comparison")


def first_words(t: Any, actual: Any, expected: Any, **options: Any) -> list[Any]:
    """What pairs of their own tell, and where."""
    c = inner(t)

    class Text(c.Pair):  # type: ignore[misc]
        def __init__(self, actual: Any, expected: Any, **kept: Any) -> None:
            self._check_inputs_isinstance(actual, expected, cls=str)
            super().__init__(actual, expected, **kept)

        def compare(self) -> None:
            if self.actual.lower() != self.expected.lower():
                self._fail(ValueError, "texts differ")

    kinds = (Text, c.NonePair, c.BooleanPair, c.NumberPair, c.TensorLikePair)
    try:
        found = c.not_close_error_metas(actual, expected, pair_types=kinds, **options)
    except Exception as error:
        return [type(error).__name__]
    return [(e.type.__name__, e.id, str(e.to_error()).splitlines()[0], str(e.to_error("m"))) for e in found]


@pytest.mark.parametrize("make", [
    lambda t: ([t.ones(2), 1, "a", None], [t.zeros(2), 2.5, "A", None]),
    lambda t: ({"a": [1.0, 5], "b": "x"}, {"a": [1.0, 6], "b": "y"}),
    lambda t: ([1], [1, 2]),
    lambda t: ([t.ones(2)], [3]),
    lambda t: (None, 1),
])  # fmt: skip
def test_pairs_of_ones_own(make: Any) -> None:
    assert first_words(rushlight, *make(rushlight)) == first_words(torch, *make(torch))


def test_tolerances_and_messages_by_themselves() -> None:
    def told(t: Any) -> Any:
        c, one, other = inner(t), t.tensor([1.0, 2.0]), t.tensor([1.0, 3.0])
        kinds = [c.default_tolerances(k) for k in (t.float16, t.int8, one, t.complex128)]
        text = c.make_scalar_mismatch_msg(1.0, 2.0, rtol=0.5, atol=0.0, identifier=lambda default: f"{default} here")
        table = c.make_tensor_mismatch_msg(one, other, one == other, rtol=0.0, atol=0.0, identifier="Those")
        pair = c.NumberPair(1, 2.0, rtol=1.0, atol=2.0)
        return kinds, c.get_tolerances(one, rtol=0.1, atol=0.2), text, table, repr(pair)

    assert told(rushlight) == told(torch)


def test_made_of_the_same_numbers() -> None:
    def made(t: Any, kind: str, **options: Any) -> Any:
        t.manual_seed(1)
        return t.testing.make_tensor((2, 3), dtype=getattr(t, kind), device="cpu", **options).tolist()

    for kind in ("float32", "float64", "bfloat16", "complex64", "int16", "bool"):
        for options in ({}, {"noncontiguous": True}, {"low": -1, "high": 2}):
            assert made(rushlight, kind, **options) == made(torch, kind, **options)
