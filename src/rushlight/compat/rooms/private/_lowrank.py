"""``torch._lowrank``: `torch.svd_lowrank` and `torch.pca_lowrank`."""

from rushlight.dispatch.registry import NAMESPACES

__all__ = ["pca_lowrank", "svd_lowrank"]

pca_lowrank, svd_lowrank = NAMESPACES[""]["pca_lowrank"], NAMESPACES[""]["svd_lowrank"]
