"""`torch.backends`: settings are kept, checked and undone as in PyTorch's build for the CPU, and questions are answered alike."""

import importlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.parity.refusing import refused_in_words

import rushlight

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """Settings as in a new process, and free to be set: PyTorch's own tools for tests, once imported, freeze them."""
    limits = [t.backends.cudnn.benchmark_limit for t in (rushlight, torch)]

    def reset() -> None:
        for t, limit in zip((rushlight, torch), limits, strict=True):
            b = t.backends
            t.set_float32_matmul_precision("highest")
            for owner in (b.cuda.matmul, b.mkldnn.matmul, b):
                owner.fp32_precision = "none"
            b.cudnn.allow_tf32, b.cudnn.benchmark_limit = True, limit
            b.cuda.matmul.allow_fp16_reduced_precision_reduction = True

    with torch.backends.__allow_nonbracketed_mutation():
        reset()  # a test of another file may have left the precision of products behind
        yield
        reset()


def assigned(owner: Any, name: str, value: Any) -> Any:
    try:
        setattr(owner, name, value)
    except Exception as error:
        return type(error).__name__, str(error)
    return getattr(owner, name)


def precisions(t: Any) -> Any:
    b = t.backends
    owners = [
        b,
        b.cuda.matmul,
        b.cudnn,
        b.cudnn.conv,
        b.cudnn.rnn,
        b.mkldnn,
        b.mkldnn.matmul,
        b.mkldnn.conv,
        b.mkldnn.rnn,
    ]
    seen = []
    for owner in (b, b.cuda.matmul, b.cudnn, b.cudnn.conv, b.mkldnn, b.mkldnn.matmul):
        for value in ("tf32", "bf16", "ieee", "none", "x"):
            seen.append((assigned(owner, "fp32_precision", value), [o.fp32_precision for o in owners]))
    b.cudnn.conv.fp32_precision, b.fp32_precision = "ieee", "tf32"
    return seen, [o.fp32_precision for o in owners]


def precision_of_products(t: Any) -> Any:
    b, seen = t.backends, []
    for given in ("high", "medium", "highest"):
        t.set_float32_matmul_precision(given)
        seen.append((b.cuda.matmul.allow_tf32, b.cuda.matmul.fp32_precision, b.mkldnn.matmul.fp32_precision))
    for value in (True, False):
        b.cuda.matmul.allow_tf32 = value
        seen.append((t.get_float32_matmul_precision(), b.cuda.matmul.fp32_precision))
    return seen


def settings_of_products(t: Any) -> Any:
    m, name = t.backends.cuda.matmul, "allow_fp16_reduced_precision_reduction"
    seen = [m.allow_fp16_accumulation, m.allow_bf16_reduced_precision_reduction, getattr(m, f"{name}_split_k")]
    return [*seen, *(assigned(m, name, v) for v in ((True, False), "x", False, (False, False))), getattr(m, f"{name}_split_k"),
            assigned(m, "nonsense", 1), refused_in_words(lambda: m.nonsense)]  # fmt: skip


def libraries(t: Any) -> Any:
    c = t.backends.cuda
    asked: list[Any] = [None, "default", "magma", "cusolver", "cublaslt", "x", 3]
    functions = (c.preferred_linalg_library, c.preferred_blas_library, c.preferred_rocm_fa_library)
    return [
        str(refused_in_words(lambda f=f, a=a: f(a)))
        for f in functions
        for a in asked
        if not (a == "cublaslt" and f is functions[2])
    ]


def attention(t: Any) -> Any:
    c, q = t.backends.cuda, t.ones(1, 2, 3, 4)
    from_module = importlib.import_module(f"{t.__name__}.nn.attention")
    kinds, seen = from_module.SDPBackend, []

    def state() -> Any:
        return [c.flash_sdp_enabled(), c.math_sdp_enabled(), c.mem_efficient_sdp_enabled(), c.cudnn_sdp_enabled(),
                [str(b) for b in from_module._cur_sdpa_kernel_backends(with_priority=True)]]  # fmt: skip

    with c.sdp_kernel(enable_flash=False):
        seen.append(state())
    with from_module.sdpa_kernel([kinds.MATH, kinds.FLASH_ATTENTION], set_priority=True):
        seen.append(state())
        with from_module.sdpa_kernel(kinds.CUDNN_ATTENTION):
            seen.append(state())
    c.enable_mem_efficient_sdp(False)
    seen.append(state())
    c.enable_mem_efficient_sdp(True)
    params = c.SDPAParams(q, q, q, None, 0.0, True, False)
    can = [f(params) for f in (c.can_use_flash_attention, c.can_use_efficient_attention, c.can_use_cudnn_attention)]
    return (seen, state(), can, tuple(params.query.shape), params.attn_mask, params.dropout, params.is_causal, params.enable_gqa,
            refused_in_words(lambda: c.enable_flash_sdp(1)), refused_in_words(lambda: from_module.sdpa_kernel("x").__enter__()),
            c.fp16_bf16_reduction_math_sdp_allowed(), c.is_ck_sdpa_available(), from_module.current_flash_attention_impl())  # fmt: skip


def older_context_warns(t: Any) -> Any:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        t.backends.cuda.sdp_kernel()
    return [(w.category.__name__, str(w.message)) for w in said if w.category is FutureWarning]


def plans(t: Any) -> Any:
    plans = t.backends.cuda.cufft_plan_cache
    return [
        refused_in_words(lambda: plans[0]),
        refused_in_words(lambda: plans["cpu"]),
        refused_in_words(lambda: plans.size),
        refused_in_words(lambda: plans.clear()),
    ]


def flags(t: Any) -> Any:
    b, seen = t.backends, []
    for room, name in (
        (b.cudnn, "benchmark"),
        (b.cudnn, "deterministic"),
        (b.mkldnn, "enabled"),
        (b.miopen, "immediate"),
    ):
        before = getattr(room, name)
        with room.flags(**{name: not before}):
            seen.append(getattr(room, name))
        seen += [
            getattr(room, name) == before,
            refused_in_words(lambda r=room, n=name: r.flags(**{n: not getattr(r, n)}).__enter__()) is None,
        ]
        setattr(room, name, before)
    b.nnpack.set_flags(False)
    seen += [assigned(b.cudnn, "benchmark", "yes"), assigned(b.cudnn, "depthwise_kernel", "x"), b.nnpack.set_flags(True),
             *(assigned(b.mkldnn, "allow_tf32", v) for v in (True, "x")),
             assigned(b.cudnn, "allow_tf32", False), b.cudnn.conv.fp32_precision, assigned(b.cudnn, "allow_tf32", True),
             b.cudnn.set_flags(True, False, 10, False, True)[3:], b.cudnn.is_acceptable(t.ones(1)), b.cudnn.version()]  # fmt: skip
    return seen


def others(t: Any) -> Any:
    b = t.backends
    b.mha.set_fastpath_enabled(False)
    seen = [
        b.mha.get_fastpath_enabled(),
        b.kleidiai.is_available(),
        b.cusparselt.version(),
        b.opt_einsum.get_opt_einsum(),
    ]
    b.mha.set_fastpath_enabled(True)
    with b.mkl.verbose(b.mkl.VERBOSE_OFF), b.mkldnn.verbose(b.mkldnn.VERBOSE_OFF):
        pass
    xnnpack = importlib.import_module(f"{t.backends.__name__}.xnnpack")
    return [*seen, refused_in_words(lambda: b.mkl.verbose(3).__enter__()), refused_in_words(lambda: b.mkldnn.verbose(9).__enter__()),
            assigned(b.quantized, "engine", "x"), assigned(b.quantized, "supported_engines", []), assigned(xnnpack, "enabled", True)]  # fmt: skip


CASES = [
    precisions,
    precision_of_products,
    settings_of_products,
    libraries,
    attention,
    older_context_warns,
    plans,
    flags,
    others,
]


if torch.version.cuda is not None:  # a PyTorch that is built for CUDA has more of these libraries than this library
    CASES = [case for case in CASES if case not in (libraries, attention, plans, flags, others)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_backends_answer_as_pytorchs(case: Callable[[Any], Any]) -> None:
    assert case(rushlight) == case(torch)


def test_there_is_no_engine_of_quantized_operators() -> None:
    quantized = rushlight.backends.quantized
    assert quantized.engine == "none" and quantized.supported_engines == ["none"]
    with pytest.raises(RuntimeError, match="QNNPACK is not supported"):
        quantized.engine = "qnnpack"


def test_implementations_of_flash_attention_are_activated_by_name() -> None:
    attention, made = rushlight.nn.attention, []
    attention.register_flash_attention_impl("mine", register_fn=lambda: made.append(1))
    attention.activate_flash_attention_impl("mine")
    assert made == [1] and attention.current_flash_attention_impl() == "mine"
    attention.restore_flash_attention_impl()
    assert attention.current_flash_attention_impl() is None
    with pytest.raises(ValueError, match="Unknown flash attention impl 'x'"):
        attention.activate_flash_attention_impl("x")
