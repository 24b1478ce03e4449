"""Tests as PyTorch and libraries write them, which are run under both: names and outcomes are compared."""

import unittest

import numpy as np
import torch
from torch.testing._internal.common_device_type import (
    dtypes,
    dtypesIfCUDA,
    expectedFailureCPU,
    instantiate_device_type_tests,
    onlyCUDA,
    onlyNativeDeviceTypes,
    precisionOverride,
    skipIf,
    tol,
    toleranceOverride,
)
from torch.testing._internal.common_dtype import floating_types
from torch.testing._internal.common_utils import (
    TestCase,
    decorateIf,
    freeze_rng_state,
    instantiate_parametrized_tests,
    noncontiguous_like,
    parametrize,
    random_hermitian_pd_matrix,
    random_square_matrix_of_rank,
    run_tests,
    subtest,
)


class A(TestCase):
    @parametrize("x", [1, 2.5, "a", torch.float32, (1,), None, True, torch.nn.ReLU, torch.device("cpu")])
    def test_a(self, x):
        pass

    @parametrize("x,y", [(1, 2), subtest((3, 4), name="named")])
    @parametrize("z", [True, False])
    def test_b(self, x, y, z):
        self.assertEqual(x + 1, y)

    @parametrize("x", [1, 2], name_fn=lambda x: f"n{x}")
    def test_c(self, x):
        pass

    @decorateIf(unittest.expectedFailure, lambda p: p["x"] == 2)
    @parametrize("x", [1, 2])
    def test_d(self, x):
        self.assertEqual(x, 1)

    @parametrize("x", [subtest(1, decorators=[unittest.skip("no")]), 2])
    def test_e(self, x):
        pass

    def check(self, ok, x, y, **k):
        try:
            self.assertEqual(x, y, **k)
        except (AssertionError, ValueError, TypeError) as e:
            self.assertFalse(ok, f"{x} {y} {e}")
        else:
            self.assertTrue(ok, f"{x} {y}")

    def test_equal(self):
        t = torch.tensor
        self.check(True, np.array(["a", "b"]), np.array(["a", "b"]))
        self.check(False, np.array(["a", "b"]), np.array(["a", "c"]))
        self.check(False, np.array(["a"], dtype=object), np.array(["a", "c"], dtype=object))
        for ok, x, y, k in [
            (1, t([1.0, 2]), t([1.0, 2]), {}),
            (0, t([1.0, 2]), t([1.0, 3]), {}),
            (0, t([1.0]), t([1]), {}),
            (1, t([1.0]), t([1]), {"exact_dtype": False}),
            (1, t(1.0), 1.0, {}),
            (1, 1.0, t(1.0), {}),
            (1, t([1, 2]), [1, 2], {}),
            (1, [t(1), 2], [t(1), 2], {}),
            (0, [1], [1, 2], {}),
            (1, {"a": t(1)}, {"a": t(1)}, {}),
            (0, {"a": 1}, {"b": 1}, {}),
            (1, "a", "a", {}),
            (0, "a", "b", {}),
            (1, None, None, {}),
            (0, None, 1, {}),
            (1, True, True, {}),
            (0, True, False, {}),
            (1, 1, 1.0, {}),
            (1, 1, True, {}),
            (0, 1, 2, {}),
            (1, 1.0, 1.0 + 1e-9, {}),
            (1, 1.0, 1.1, {"atol": 0.2, "rtol": 0}),
            (1, t([float("nan")]), t([float("nan")]), {}),
            (0, t([float("nan")]), t([float("nan")]), {"equal_nan": False}),
            (1, np.ones(2), np.ones(2), {}),
            (1, t([1.0, 1.0], dtype=torch.float64), np.ones(2), {}),
            (1, {1, 2}, {1, 2}, {}),
            (0, {1}, {2}, {}),
            (1, int, int, {}),
            (0, int, float, {}),
            (1, (1, 2), [1, 2], {}),
            (1, torch.Size([1, 2]), (1, 2), {}),
            (1, torch.Size([1, 2]), [1, 2], {}),
            (1, torch.float32, torch.float32, {}),
            (0, torch.float32, torch.float64, {}),
            (0, t([1.0, 2]), t([[1.0, 2]]), {}),
            (1, t([1.0 + 1e-6]), t([1.0]), {}),
            (1, np.float64(1), 1.0, {}),
            (1, t([True]), t([True]), {}),
            (1, t(3), 3, {}),
            (1, t([]), t([]), {}),
            (1, t(1.0).to_sparse() if 0 else t([1.0, 0]).to_sparse(), t([1.0, 0]).to_sparse(), {}),
            (0, t([1.0]), "a", {}),
            (1, torch.device("cpu"), torch.device("cpu"), {}),
            (1, b"a", b"a", {}),
            (1, slice(1), slice(1), {}),
            (1, range(3), [0, 1, 2], {}),
            (1, 3, np.int64(3), {}),
            (0, t([1]), t([2]), {}),
            (1, 1j, 1j, {}),
        ]:
            self.check(bool(ok), x, y, **k)

    def test_not_equal(self):
        self.assertNotEqual(torch.ones(2), torch.zeros(2))

    def test_rng(self):
        with freeze_rng_state():
            a = torch.rand(2)
        self.assertEqual(a, torch.rand(2))

    def test_matrices(self):
        self.assertEqual(torch.linalg.matrix_rank(random_square_matrix_of_rank(4, 2)), 2)
        torch.linalg.cholesky(random_hermitian_pd_matrix(3, 2, dtype=torch.complex128, device="cpu"))
        t = noncontiguous_like(torch.ones(3))
        self.assertFalse(t.is_contiguous())
        self.assertEqual(t, torch.ones(3))

    def test_warn(self):
        self.assertNotWarn(lambda: torch.arange(2))


instantiate_parametrized_tests(A)


class D(TestCase):
    @dtypes(torch.float32, torch.int64)
    def test_a(self, device, dtype):
        self.assertEqual(torch.ones(2, device=device, dtype=dtype).dtype, dtype)

    def test_b(self, device):
        self.assertEqual(device, "cpu")

    @onlyCUDA
    def test_c(self, device):
        raise AssertionError

    @parametrize("x", [1, 2])
    @dtypes(torch.float32)
    def test_d(self, device, dtype, x):
        pass

    @dtypes(*floating_types())
    @precisionOverride({torch.float32: 1.0})
    def test_e(self, device, dtype):
        if dtype == torch.float32:
            self.assertEqual(torch.tensor(1.0), torch.tensor(1.5))

    @expectedFailureCPU
    def test_f(self, device):
        self.assertEqual(1, 2)

    @toleranceOverride({torch.float32: tol(atol=1, rtol=0)})
    @dtypes(torch.float32)
    def test_g(self, device, dtype):
        self.assertEqual(torch.tensor(1.0), torch.tensor(1.5))

    @parametrize("x", [1, 2])
    def test_h(self, device, x):
        pass

    @skipIf(True, "no")
    def test_i(self, device):
        raise AssertionError

    @dtypes((torch.float32, torch.int64))
    def test_j(self, device, dtypes):
        self.assertEqual(len(dtypes), 2)

    @onlyNativeDeviceTypes
    @dtypesIfCUDA(torch.float16)
    @dtypes(torch.float32)
    def test_k(self, device, dtype):
        pass

    def helper(self):
        pass


instantiate_device_type_tests(D, globals())
if __name__ == "__main__":
    run_tests()
