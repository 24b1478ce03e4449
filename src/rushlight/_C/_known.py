"""Functions by the names that tables have for them: ``torch._C._VariableFunctions``, ``_special``, ``_linalg`` and ``_fft``.

PyTorch's tests of what classes override have such a table (`torch.testing._internal.generated.annotated_fn_args`), which names
functions for other devices and layouts, too: those are here by name alone, and refuse.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable
from typing import Any

from rushlight import absent
from rushlight.dispatch.registry import NAMESPACES
from rushlight.tensor import Tensor

WHY = "it is for other devices or layouts, or a part of a function that is one here"

FUNCTIONS = frozenset(
    """
    __and__ __lshift__ __or__ __rshift__ __xor__ _add_batch_dim _add_relu _add_relu_ _aminmax _batch_norm_impl_index
    _cast_Byte _cast_Char _cast_Double _cast_Float _cast_Half _cast_Int _cast_Long _cast_Short _choose_qparams_per_tensor
    _coalesce _conj_copy _convert_weight_to_int4pack _convolution _convolution_mode _copy_from _copy_from_and_resize
    _cslt_compress _cslt_sparse_mm _cslt_sparse_mm_search _ctc_loss _cudnn_ctc_loss _cudnn_init_dropout_state _cudnn_rnn
    _cudnn_rnn_flatten_weight _cufft_clear_plan_cache _cufft_get_plan_cache_max_size _cufft_get_plan_cache_size
    _cufft_set_plan_cache_max_size _cummax_helper _cummin_helper _dim_arange _dyn_quant_matmul_4bit
    _dyn_quant_pack_4bit_weight _efficientzerotensor _embedding_bag _embedding_bag_forward_only _empty_affine_quantized
    _empty_per_channel_affine_quantized _fake_quantize_learnable_per_channel_affine
    _fake_quantize_learnable_per_tensor_affine _fake_quantize_per_tensor_affine_cachemask_tensor_qparams
    _fill_mem_eff_dropout_mask_ _flash_attention_forward_no_dropout_inplace _foobar _functional_assert_async
    _functional_assert_scalar _functional_sym_constrain_range _functional_sym_constrain_range_for_size _fused_adagrad_
    _fused_adam_ _fused_adamw_ _fused_dropout _fused_moving_avg_obs_fq_helper _fused_rms_norm _fused_sdp_choice _fused_sgd_
    _fw_primal_copy _grid_sampler_2d_cpu_fallback _histogramdd_bin_edges _histogramdd_from_bin_cts
    _histogramdd_from_bin_tensors _indices_copy _is_zerotensor _lazy_clone _logcumsumexp _lstm_mps _lu_with_info
    _make_dep_token _make_dual _make_dual_copy _make_per_channel_quantized_tensor _make_per_tensor_quantized_tensor
    _masked_scale _masked_softmax _mixed_dtypes_linear _mkldnn_reshape _mkldnn_transpose _mkldnn_transpose_ _mps_convolution
    _mps_convolution_transpose _native_multi_head_attention _neg_view_copy _nested_compute_contiguous_strides_offsets
    _nested_from_padded_and_nested_example _nested_from_padded_tensor _nested_get_jagged_dummy _nested_get_lengths
    _nested_get_max_seqlen _nested_get_min_seqlen _nested_get_offsets _nested_get_ragged_idx _nested_get_values
    _nested_get_values_copy _nested_tensor_from_tensor_list _nested_tensor_softmax_with_shape _nested_view_from_buffer
    _nested_view_from_buffer_copy _nested_view_from_jagged _nested_view_from_jagged_copy _nnpack_available
    _nnpack_spatial_convolution _pack_padded_sequence _pad_packed_sequence _philox_key_fold_in _philox_key_split
    _philox_normal_ _philox_uniform_ _pin_memory _print _propagate_xla_data _remove_batch_dim _reshape_alias_copy
    _reshape_from_tensor _resize_output_ _rowwise_prune _saturate_weight_to_fp16 _scaled_dot_product_attention_math
    _scaled_dot_product_attention_math_for_mps _scaled_dot_product_cudnn_attention _scaled_dot_product_efficient_attention
    _scaled_dot_product_flash_attention _scaled_grouped_mm _scaled_grouped_mm_v2 _sobol_engine_draw _sobol_engine_ff_
    _sobol_engine_initialize_state_ _sobol_engine_scramble_ _sparse_broadcast_to _sparse_broadcast_to_copy _sparse_csr_prod
    _sparse_csr_sum _sparse_log_softmax_backward_data _sparse_semi_structured_addmm _sparse_semi_structured_apply
    _sparse_semi_structured_apply_dense _sparse_semi_structured_linear _sparse_semi_structured_mm
    _sparse_semi_structured_tile _sparse_softmax_backward_data _sparse_sparse_matmul _sparse_sum _stack
    _test_autograd_multiple_dispatch _test_autograd_multiple_dispatch_view _test_autograd_multiple_dispatch_view_copy
    _test_check_tensor _test_functorch_fallback _test_parallel_materialize _test_serialization_subcmul _to_cpu
    _to_sparse_semi_structured _transform_bias_rescale_qkv _transformer_encoder_layer_fwd _triton_multi_head_attention
    _triton_scaled_dot_attention _unpack_dual _use_cudnn_ctc_loss _use_cudnn_rnn_flatten_weight _use_miopen_ctc_loss
    _validate_compressed_sparse_indices _values_copy _weight_int4pack_mm _weight_int4pack_mm_with_scales_and_zeros
    _weight_norm _weight_norm_interface _wrapped_linear_prepack _wrapped_quantized_linear_prepacked
    batch_norm_backward_elemt batch_norm_backward_reduce batch_norm_elemt batch_norm_gather_stats
    batch_norm_gather_stats_with_counts batch_norm_stats batch_norm_update_stats ccol_indices_copy choose_qparams_optimized
    col_indices_copy crow_indices_copy cudnn_affine_grid_generator cudnn_batch_norm cudnn_convolution
    cudnn_convolution_add_relu cudnn_convolution_relu cudnn_convolution_transpose cudnn_grid_sampler cudnn_is_acceptable
    dequantize empty_quantized fbgemm_linear_fp16_weight fbgemm_linear_fp16_weight_fp32_activation fbgemm_linear_int8_weight
    fbgemm_linear_int8_weight_fp32_activation fbgemm_linear_quantize_weight fbgemm_pack_gemm_matrix_fp16
    fbgemm_pack_quantized_matrix indices_copy int_repr is_vulkan_available linalg__powsum _linalg_eigvals miopen_batch_norm
    miopen_convolution miopen_convolution_add_relu miopen_convolution_relu miopen_convolution_transpose miopen_ctc_loss
    miopen_depthwise_convolution miopen_rnn mkldnn_adaptive_avg_pool2d mkldnn_convolution mkldnn_linear_backward_weights
    mkldnn_max_pool2d mkldnn_max_pool3d mkldnn_rnn_layer q_per_channel_axis q_per_channel_scales q_per_channel_zero_points
    q_scale q_zero_point quantize_per_channel quantize_per_tensor quantize_per_tensor_dynamic quantized_batch_norm
    quantized_gru_cell quantized_lstm_cell quantized_max_pool1d quantized_max_pool2d quantized_max_pool3d
    quantized_rnn_relu_cell quantized_rnn_tanh_cell resize_as_sparse_ row_indices_copy slice_inverse sym_constrain_range
    sym_constrain_range_for_size values_copy
""".split()
)

LAYERS = frozenset(
    """
    _conv_depthwise2d _pad_circular _pad_enum _test_ambiguous_defaults _test_optional_filled_intlist
    _test_optional_floatlist _test_optional_intlist _test_string_default _test_warn_in_autograd _upsample_lanczos2d_aa
    conv_depthwise3d cross_entropy_loss flatten_dense_tensors gelu_ hardsigmoid_ hardswish_ mish_ mkldnn_linear
    mkldnn_reorder_conv2d_weight mkldnn_reorder_conv3d_weight nll_loss_nd pad_sequence relu6_ rrelu_with_noise_ silu_
    slow_conv3d slow_conv_dilated2d slow_conv_dilated3d slow_conv_transpose2d slow_conv_transpose3d thnn_conv2d
    unflatten_dense_tensors
""".split()
)

METHODS = frozenset(
    """
    _addmm_activation _autocast_to_full_precision _autocast_to_reduced_precision _coalesced_ _is_zerotensor _lazy_clone
    _nested_tensor_size _nested_tensor_storage_offsets _nested_tensor_strides _philox_normal_ _philox_uniform_
    _sparse_mask_projection _to_dense _to_sparse _to_sparse_bsc _to_sparse_bsr _to_sparse_csc _to_sparse_csr dequantize
    int_repr q_per_channel_axis q_per_channel_scales q_per_channel_zero_points q_scale q_zero_point qscheme
    resize_as_sparse_ slice_inverse sparse_resize_ sparse_resize_and_clear_ to_mkldnn
""".split()
)

COMPUTED = frozenset({"_conj", "_conj_physical", "_is_all_true", "_is_any_true", "_neg_view"})


def computed(name: str) -> Any:
    """The function of ``torch`` or of ``torch.ops.aten`` with a name, or None."""
    from rushlight.library import aten

    found = NAMESPACES[""].get(name) or getattr(sys.modules["rushlight"], name, None)
    if callable(found):
        return found
    try:
        return aten.function(name)
    except AttributeError:
        return None


def known(space: str, name: str, names: frozenset[str] = FUNCTIONS) -> Callable[..., Any]:
    """What refuses for a function that is known by name.  Raises AttributeError of others."""
    if name not in names:
        raise AttributeError(f"{space} has no {name}: there is no such operator")
    return absent.refusing(space, name, WHY)


class VariableFunctions:
    """The functions of ``torch`` that compute, by name."""

    def __getattr__(self, name: str) -> Any:
        found = None if name.startswith("__") and name not in FUNCTIONS else computed(name)
        return found or known("torch._C._VariableFunctions", name)

    def __dir__(self) -> list[str]:
        return sorted(name for name, found in NAMESPACES[""].items() if callable(found))


class Space:
    """The functions of one namespace, whose name begins theirs: ``torch._C._special.special_erf``."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        public = importlib.import_module(f"rushlight.{self._name}")
        found = getattr(public, name.removeprefix(f"{self._name}_"), None)
        return found if callable(found) else computed(name) or known(f"torch._C._{self._name}", name)


class Method:
    """A method that the class of tensors has by name: a tensor has it where something computes it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, tensor: object, cls: type) -> Callable[..., Any]:
        found = computed(self.name) if self.name in COMPUTED else None
        if tensor is None:
            return found or absent.refusing("torch.Tensor", self.name, WHY)
        if found is None:
            raise AttributeError(f"'{cls.__name__}' object has no attribute '{self.name}': {WHY}")
        return functools.partial(found, tensor)


def name_methods() -> None:
    """Put the methods that are known by name into the class of tensors."""
    for name in (*METHODS, *COMPUTED):
        if not hasattr(Tensor, name):
            setattr(Tensor, name, Method(name))
