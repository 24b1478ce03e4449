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
            "import functorch; import torch._functorch.vmap as v; assert v.vmap is functorch.vmap is torch.vmap\n"
            "assert v._get_name(print) == 'print' and torch._guards.active_fake_mode() is None\n"
            "try:\n    _add_batch_dim()\nexcept NotImplementedError as e:\n    print(e)")  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.startswith("True\n") and "use torch.func.vmap" in done.stdout, done.stderr


def test_overrides_of_einsum_get_operands_one_by_one() -> None:
    class Told:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return len(args)

    assert torch.einsum("i,i->", [Told(), torch.ones(1)]) == 3 and torch.einsum("i,i->", Told(), Told()) == 3


def test_models_as_functions_of_their_parameters() -> None:
    from rushlight.compat import functorch

    model = torch.nn.Linear(2, 3)
    f, params = functorch.make_functional(model)
    x = torch.randn(4, 2)
    assert torch.equal(f(params, x), model(x)) and params[0] is not model.weight and f.stateless_model.weight.is_meta
    assert not functorch.make_functional(model, True)[1][0].requires_grad
    found = functorch.grad(lambda p: f(p, x).sum())(params)
    assert torch.allclose(found[0], x.sum(0).expand(3, 2))
    norm = torch.nn.BatchNorm1d(2)
    with pytest.raises(RuntimeError, match="make_functional_with_buffers"):
        functorch.make_functional(norm)
    f, params, buffers = functorch.make_functional_with_buffers(norm)
    f(params, buffers, x)
    assert norm.running_mean.tolist() == [0, 0] and buffers[0].tolist() != [0, 0]
    models = [torch.nn.Linear(2, 1) for _ in range(3)]
    f, params, buffers = functorch.combine_state_for_ensemble(models)
    assert torch.allclose(functorch.vmap(f, (0, 0, None))(params, buffers, x), torch.stack([m(x) for m in models]))
    with pytest.raises(NotImplementedError, match="nothing is compiled"):
        functorch.make_fx(model)


def test_dtypes_of_quantized_numbers_are_names() -> None:
    assert torch.qint8.itemsize == 1 and torch.qint32.itemsize == 4 and not torch.quint8.is_floating_point
    assert {torch.qint8: 1}[torch.qint8] == 1 and repr(torch.quint4x2) == "torch.quint4x2"
    with pytest.raises(NotImplementedError, match=r"torch\.qint8 is there by name alone"):
        torch.zeros(2, dtype=torch.qint8)


def test_conditions_of_traced_code() -> None:
    class Net(torch.nn.Module):
        def forward(self, x):
            torch._assert(x.sum() > 0, "not positive")
            return x * 2

    traced = torch.fx.symbolic_trace(Net())
    assert [n.target for n in traced.graph.nodes if n.op == "call_function"].count(torch._assert) == 1
    with pytest.raises(AssertionError, match="not positive"):
        traced(torch.zeros(2))
    assert traced(torch.ones(2)).tolist() == [2, 2]


def test_tensors_of_modules_are_swapped() -> None:
    from rushlight.nn.utils._named_member_accessor import set_tensor, swap_tensor

    module, other = torch.nn.Linear(2, 2), torch.ones(2, 2)
    former = swap_tensor(module, "weight", other)
    assert module.weight is other and swap_tensor(module, "weight", former) is other and module.weight is former
    token = swap_tensor(module, "extra", other, allow_missing=True)
    assert module.extra is other
    swap_tensor(module, "extra", token, allow_missing=True)
    assert not hasattr(module, "extra")
    set_tensor(module, "bias", None)
    assert module.bias is None and "bias" in module._parameters
    for error, name, value in ((AttributeError, "nope", other), (TypeError, "in_features", other), (KeyError, "a.b", other),
                               (TypeError, "weight", 3)):  # fmt: skip
        with pytest.raises(error):
            swap_tensor(module, name, value)


def test_contexts_that_decorate() -> None:
    from rushlight.utils._contextlib import _DecoratorContextManager, _NoParamDecoratorContextManager, context_decorator

    class Depth(_DecoratorContextManager):
        now = 0

        def __enter__(self):
            Depth.now += 1

        def __exit__(self, *error):
            Depth.now -= 1

    class Bare(_NoParamDecoratorContextManager, Depth):
        pass

    @Depth()
    def counted():
        yield Depth.now
        yield Depth.now

    steps = counted()
    assert [next(steps), Depth.now, next(steps), Depth.now] == [1, 0, 1, 0]
    assert (
        Bare(lambda: Depth.now)() == 1
        and context_decorator(lambda: Depth(), lambda: Depth.now)() == 1
        and Depth.now == 0
    )
    with pytest.raises(ValueError, match="which is both"):
        context_decorator(type("Both", (Depth,), {"__call__": print})(), print)


def test_small_names_of_packages() -> None:
    from rushlight.ao.quantization import FakeQuantizeBase, ObserverBase
    from rushlight.distributions.transforms import _clipped_sigmoid
    from rushlight.nn.modules.module import (
        _global_parameter_registration_hooks,
        register_module_parameter_registration_hook,
    )
    from rushlight.utils import _pytree
    from rushlight.utils._python_dispatch import TorchDispatchMode, is_traceable_wrapper_subclass
    from rushlight.utils.data._utils import collate

    assert not isinstance(torch.nn.Linear(1, 1), (FakeQuantizeBase, ObserverBase)) and not torch.cuda._initialized
    assert _clipped_sigmoid(torch.tensor([-200.0, 0.0, 200.0])).tolist() == [
        torch.finfo(torch.float32).tiny,
        0.5,
        1 - 2**-23,
    ]
    handle = register_module_parameter_registration_hook(lambda module, name, p: None)
    assert len(_global_parameter_registration_hooks) == 1
    handle.remove()
    assert collate.collate_tensor_fn([torch.ones(2), torch.zeros(2)]).shape == (2, 2) and collate.collate_int_fn(
        [1, 2]
    ).tolist() == [1, 2]
    assert _pytree.is_structseq_instance(torch.ones(2).max(0)) and not _pytree.is_structseq_instance((1,))
    assert _pytree._list_unflatten(*_pytree._list_flatten([1, 2])) == [1, 2]
    assert not is_traceable_wrapper_subclass(torch.ones(1)) and isinstance(
        torch.ones(1).untyped_storage(), torch.StorageBase
    )
    assert not torch._C._is_torch_function_mode_enabled()
    with pytest.raises(NotImplementedError, match="has no __torch_dispatch__"), TorchDispatchMode():
        torch.ones(1).sin()
    with pytest.raises(NotImplementedError, match="symbolic_trace"):
        torch.jit._get_trace_graph()


def test_what_optimizers_of_others_take() -> None:
    from rushlight.optim import optimizer

    class Descent(torch.optim.Optimizer):
        @optimizer._use_grad_for_differentiable
        def step(self) -> bool:
            return torch.is_grad_enabled()

    leaf = torch.ones(1, requires_grad=True)
    assert [Descent([leaf], {"differentiable": on}).step() for on in (True, False)] == [True, False]
    assert torch.is_grad_enabled() and optimizer._default_to_fused_or_foreach([leaf], False) == (False, False)
    assert optimizer._get_value(torch.tensor(2.5)) == optimizer._get_value(2.5) == 2.5
    assert optimizer._get_scalar_dtype() is torch.float32 and "cpu" not in optimizer._get_capturable_supported_devices()
    lists = [
        [torch.ones(2, dtype=torch.complex64), torch.ones(1)],
        [torch.zeros(2, dtype=torch.complex64), torch.ones(1)],
    ]
    optimizer._view_as_real(*lists)
    assert [[tuple(x.shape) for x in given] for given in lists] == [[(2, 2), (1,)]] * 2


def test_tensors_by_device_and_dtype() -> None:
    from rushlight.compat.rooms._foreach_utils import _group_tensors_by_device_and_dtype as groups

    a, b, c = torch.ones(1), torch.ones(2, dtype=torch.float64), torch.ones(3)
    found = groups([[a, b, c], [c, None, a], []], with_indices=True)
    assert list(found) == [(a.device, torch.float32), (a.device, torch.float64)]
    lists, places = found[a.device, torch.float32]
    assert places == [0, 2] and [[id(x) for x in given] for given in lists] == [[id(a), id(c)], [id(c), id(a)], []]
    assert groups([[b]])[a.device, torch.float64] == ([[b]], [])
    with pytest.raises(RuntimeError, match=r"lists of one length, got \[1, 2\]"):
        groups([[a], [b, c]])


def test_modules_that_libraries_import() -> None:
    code = ("from rushlight.compat import imports; imports.install(); import torch, importlib\n"
            "from rushlight.absent.walls import WALLS\n"
            "[importlib.import_module(f'torch.{name}') for name in WALLS]\n"
            "from torch.optim.adamw import AdamW; assert AdamW is torch.optim.AdamW\n"
            "assert not (torch.distributed.autograd.is_available() or torch.has_cuda or torch._C._is_tracing())\n"
            "from torch.utils.data.dataloader import _collate_fn_t, _worker_init_fn_t\n"
            "from torch.distributions.multivariate_normal import _precision_to_scale_tril as root\n"
            "print(root(torch.eye(2) / 4).tolist())\n"
            "from torch.utils.benchmark.utils.timer import Timer; from torch.utils.benchmark.utils.common import Measurement\n"
            "print(torch.utils.benchmark.Timer().timeit(3).number_per_run, Timer is torch.utils.benchmark.Timer)\n"
            "try: torch.cuda.comm.broadcast(1)\nexcept NotImplementedError as e: print(e)")  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.startswith("[[2.0, 0.0], [0.0, 2.0]]\n3 True\n") and "no GPU" in done.stdout, done.stderr


def test_functions_forked_run_at_once() -> None:
    x = torch.ones(2, requires_grad=True)
    future = torch.jit.fork(torch.mul, x, other=2)
    assert isinstance(future, torch.jit.Future) and torch.jit.wait(future).tolist() == [2, 2]
    torch.jit.wait(future).sum().backward()
    assert x.grad.tolist() == [2, 2]
    with pytest.raises(ZeroDivisionError):
        torch.jit.fork(lambda: 1 / 0)
    with pytest.raises(TypeError, match="Future, got int"):
        torch.jit.wait(3)


def test_a_range_of_nvtx_is_refused_when_it_is_entered() -> None:
    @torch.cuda.nvtx.range("step {}")
    def step():
        return 1

    with pytest.raises(RuntimeError, match="no CUDA"):
        step()


def test_rooms_of_distributed_that_libraries_import() -> None:
    names = ("checkpoint.hf_storage:HuggingFaceStorageReader algorithms.join:Join _composable.fsdp:fully_shard constants:default_pg_timeout "
             "_functional_collectives:all_reduce device_mesh:DeviceMesh tensor:Replicate optim:ZeroRedundancyOptimizer "
             "fsdp.fully_sharded_data_parallel:FullyShardedDataParallel")  # fmt: skip
    imports = "\n".join("from torch.distributed.{} import {}".format(*name.split(":")) for name in names.split())
    code = f"from rushlight.compat import imports; imports.install()\n{imports}\nimport torch\nprint(isinstance(torch.ones(1), Replicate))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout == "False\n", done.stderr
