"""A loss that depends on the phases of complex singular vectors or eigenvectors has no gradient: it is refused."""

from collections.abc import Callable
from typing import Any

import pytest

import rushlight

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity

LOSSES: dict[str, Callable[[Any, Any], Any]] = {
    "svd by phase": lambda t, a: t.linalg.svd(a, full_matrices=False)[0].real.sum(),
    "svd of right vectors by phase": lambda t, a: t.linalg.svd(a, full_matrices=False)[2].imag.sum(),
    "svd by magnitude": lambda t, a: t.linalg.svd(a, full_matrices=False)[0].abs().pow(2)[0].sum(),
    "svd whose phases cancel": lambda t, a: (lambda u, s, vh: ((u * s.sqrt()) @ vh).real.sum())(*t.linalg.svd(a, full_matrices=False)),
    "eig by phase": lambda t, a: t.linalg.eig(a)[1].real.sum(),
    "eig by magnitude": lambda t, a: t.linalg.eig(a)[1].abs().pow(2)[0, 0],
    "eigh by phase": lambda t, a: t.linalg.eigh(a + a.mH)[1].real.sum(),
    "eigh by magnitude": lambda t, a: t.linalg.eigh(a + a.mH)[1].abs().pow(2)[0, 1],
    "eigenvalues": lambda t, a: t.linalg.eig(a)[0].real.sum(),
}  # fmt: skip


@pytest.mark.parametrize("name", LOSSES)
def test_phases(name: str) -> None:
    torch.manual_seed(0)
    values = torch.randn(3, 3, dtype=torch.complex128).numpy()

    def run(t: Any) -> Any:
        leaf = t.from_numpy(values.copy()).requires_grad_()
        try:
            LOSSES[name](t, leaf).backward()
        except RuntimeError as error:
            assert "ill-defined" in str(error)
            return None
        return leaf.grad.numpy()

    want, found = run(torch), run(rushlight)
    assert (want is None) == (found is None) == name.endswith("phase")
    if want is not None:
        assert found == pytest.approx(want, abs=1e-9)
