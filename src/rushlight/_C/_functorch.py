"""``torch._C._functorch``: questions about the transformations of `torch.func`."""

from __future__ import annotations

from typing import Any

from rushlight import absent

__all__ = ["is_batchedtensor", "is_legacy_batchedtensor"]


def is_legacy_batchedtensor(tensor: object) -> bool:
    """Whether a tensor is one of an older vmap: no."""
    return False


def is_batchedtensor(tensor: Any) -> bool:
    """Whether a tensor is mapped over by vmap."""
    return bool(getattr(tensor._array, "interpreted", False))


def is_gradtrackingtensor(tensor: object) -> bool:
    """Whether a tensor is a wrapper of another that a transformation differentiates by: there are no wrappers."""
    return False


is_functorch_wrapped_tensor = is_batchedtensor


def maybe_get_level(tensor: object) -> int:
    """The level of a wrapper: -1, of a tensor that is none."""
    return -1


maybe_get_bdim = maybe_get_level


def reshape_dim_into(src: int, dst: int, x: Any) -> Any:
    """A tensor whose dimension `src` is joined to dimension `dst` of what is left, before it."""
    src, dst = src % x.dim(), dst % (x.dim() - 1)
    return x.movedim(src, dst).flatten(dst, dst + 1)


def reshape_dim_outof(src: int, size1: int, x: Any) -> Any:
    """A tensor whose dimension `src` is parted into two, the first of size `size1`."""
    src = src % x.dim()
    if x.shape[src] % size1:
        raise RuntimeError(
            f"reshape_dim_outof: a dimension of size {x.shape[src]} is not parted into {size1} equal ones"
        )
    return x.unflatten(src, (size1, x.shape[src] // size1))


def get_single_level_autograd_function_allowed() -> bool:
    """Whether `autograd.Function` takes transformations one by one: it takes them as they are."""
    return False


def set_single_level_autograd_function_allowed(allowed: bool) -> None:
    """Accepted, without effect."""


absent.names(
    globals(),
    "levels of torch.func are no wrappers of tensors here: use torch.func.vmap",
    "CFunctionalizeInterpreterPtr CGradInterpreterPtr CInterpreter CJvpInterpreterPtr CVmapInterpreterPtr DynamicLayer RandomnessType "
    "TransformType",
    "_add_batch_dim _remove_batch_dim _unwrap_for_grad _wrap_for_grad _vmap_decrement_nesting _vmap_increment_nesting get_interpreter_stack get_unwrapped "
    "peek_interpreter_stack pop_dynamic_layer_stack push_dynamic_layer_stack",
)
