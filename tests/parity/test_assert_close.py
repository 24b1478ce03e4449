"""assert_close passes and fails where PyTorch's does, with its messages."""

from __future__ import annotations

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
