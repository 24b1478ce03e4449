"""Names at the head of files of tests written for PyTorch, and what is done with them."""

from __future__ import annotations

import collections
import io
import os
import pickle
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import pytest
from tests.processes import printed_as_torch

import rushlight as torch
from rushlight import _C
from rushlight._C import DispatchKey
from rushlight._C._higher_order import HigherOrderOperator
from rushlight.autograd._functions import Resize
from rushlight.compat.rooms._functorch import eager_transforms, make_functional
from rushlight.compat.rooms._functorch.vmap import restore_vmap
from rushlight.compat.rooms._higher_order_ops.out_dtype import out_dtype
from rushlight.compat.rooms._subclasses import fake_utils
from rushlight.compat.rooms.private import _custom_ops, _weights_only_unpickler
from rushlight.compat.rooms.private._library import utils as library_utils
from rushlight.fx.experimental import symbolic_shapes
from rushlight.multiprocessing.reductions import StorageWeakRef
from rushlight.nn.modules import module as modules
from rushlight.utils import _python_dispatch as dispatch

PROGRAM = """
import torch, torch.autograd._functions, torch.package, torch.nn.parallel._functions, torch.cuda.jiterator, functorch.compile
from functorch.einops import rearrange
from torch._C import _AutoDispatchBelowAutograd, _IncludeDispatchKeyGuard, _dispatch_keys
from torch._C._functorch import CInterpreter, is_gradtrackingtensor
from torch._custom_ops import custom_op, impl_abstract
from torch._dispatch.python import enable_python_dispatcher
from torch._dynamo.utils import LazyString, clone_input
from torch._functorch.aot_autograd import aot_function
from torch._functorch.apis import chunk_vmap
from torch._functorch.autograd_function import custom_function_call
from torch._functorch.batch_norm_replacement import replace_all_batch_norm_modules_
from torch._functorch.deprecated import vmap
from torch._functorch.functional_call import functional_call
from torch._functorch.pyfunctorch import retrieve_current_functorch_interpreter
from torch._functorch.utils import enable_single_level_autograd_function, exposed_in
from torch._library.custom_ops import CustomOpDef
from torch._library.infer_schema import infer_schema
from torch._ops import HigherOrderOperator
from torch._subclasses.fake_tensor import FakeTensorConverter
from torch._subclasses.functional_tensor import FunctionalTensor
from torch._subclasses.schema_check_mode import SchemaCheckMode
from torch._weights_only_unpickler import _get_allowed_globals
from torch.autograd.variable import VariableMeta
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.masked import _input_mask, _output_mask
from torch.optim.optimizer import _get_fused_kernels_supported_devices
from torch.overrides import _pop_mode_temporarily
from torch.storage import _LegacyStorage, _StorageBase
assert HigherOrderOperator is not None and "cpu" in _get_fused_kernels_supported_devices()
assert isinstance(torch.ones(1).untyped_storage(), _StorageBase) and isinstance(torch.ones(1)._typed_storage(), _LegacyStorage)
assert str(LazyString(lambda x: x, "late")) == "late" and not is_gradtrackingtensor(torch.ones(1))
x = torch.ones(2, requires_grad=True)
x.grad = torch.full((2,), 3.0)
copy = clone_input(x)
assert copy.is_leaf and copy.requires_grad and copy.grad is not x.grad and copy.grad.equal(x.grad)
assert "torch.nn.parameter.Parameter" in _get_allowed_globals() and exposed_in("m")(lambda: 0).__module__ == "m"
with enable_single_level_autograd_function(), enable_python_dispatcher():
    assert chunk_vmap(torch.sum, chunks=2)(torch.ones(3, 2)).tolist() == [2, 2, 2]
"""


def test_they_are_imported_as_torch() -> None:
    printed_as_torch(PROGRAM)


# Operators that take functions --------------------------------------------------------------------------------------


class Higher(HigherOrderOperator):
    """An operator without more of its own."""

    def __call__(self, *args: Any) -> Any:
        return super().__call__(*args)


@pytest.fixture(name="higher")
def made() -> Higher:
    return Higher("names_of_test_files")


def test_an_operator_goes_to_what_is_registered(higher: Higher) -> None:
    with pytest.raises(NotImplementedError, match="could not find kernel for HigherOrderOperator names_of_test_files"):
        higher(torch.ones(1))
    higher.py_impl(DispatchKey.CompositeExplicitAutograd)(lambda x: x + 1)
    with _C._AutoDispatchBelowAutograd():
        assert higher(torch.ones(1)) == 2
    with _C._ExcludeDispatchKeyGuard(_C.DispatchKeySet(DispatchKey.AutogradCPU)):
        assert higher(torch.ones(1)) == 2

    def differentiated(x: Any) -> Any:
        with _C._AutoDispatchBelowAutograd():
            return higher(x) * 10

    higher.py_autograd_impl(differentiated)
    assert higher(torch.ones(1)) == 20 and higher.name() == str(higher) == higher.__name__
    assert higher.has_kernel_for_dispatch_key(DispatchKey.Autograd) and higher.namespace == "higher_order"
    assert torch.ops.higher_order.names_of_test_files is higher
    with pytest.raises(RuntimeError, match="Trying to override a python impl"):
        higher.py_impl(DispatchKey.CompositeExplicitAutograd)(len)


def test_modes_and_classes_have_rules_of_their_own(higher: Higher) -> None:
    class Mode(dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return ("seen", func)

    class Own(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func(*args, **(kwargs or {}))

    x = torch.ones(1)
    higher.fallthrough(DispatchKey.Autograd)
    with Mode(), pytest.raises(NotImplementedError, match="supports_higher_order_operators to True"):
        higher(x)
    Mode.supports_higher_order_operators = True
    with Mode():
        assert higher(x) == ("seen", higher)
        higher.py_impl(Mode)(lambda mode, y: (mode.__class__, dispatch.is_in_torch_dispatch_mode()))
        assert higher(x) == (Mode, False)
    own = torch.Tensor._make_subclass(Own, x)
    with pytest.raises(NotImplementedError, match="There was no rule registered for HOP"):
        higher(own)
    higher.py_impl(Own)(lambda y: type(y))
    assert higher(own) is Own


def test_an_operator_without_a_call_is_none() -> None:
    with pytest.raises(TypeError, match="abstract"):
        HigherOrderOperator("nonesuch")  # type: ignore[abstract]


def test_products_in_another_dtype() -> None:
    a = torch.randint(-100, 100, (3, 3), dtype=torch.int8)
    mm = torch.ops.aten.mm.default
    assert out_dtype(mm, torch.int32, a, a).equal(a.int() @ a.int())
    for op, said in ((torch.mm, "must be an OpOverload"), (torch.ops.aten.mm, "must be an OpOverload"),
                     (torch.ops.aten.add_.Tensor, "functional operator"), (torch.ops.aten.add.Tensor, "only allows")):  # fmt: skip
        with pytest.raises(ValueError, match=said):
            out_dtype(op, torch.int32, a, a)


# Keys of dispatch ---------------------------------------------------------------------------------------------------


def test_keys_of_tensors() -> None:
    x = torch.ones(1, dtype=torch.complex64)
    assert repr(_C._dispatch_keys(x)) == "DispatchKeySet(CPU, ADInplaceOrView, AutogradCPU, AutocastCPU)"
    assert _C._dispatch_keys(x.conj()).has(DispatchKey.Conjugate) and not _C._dispatch_keys(x).has(DispatchKey.Python)
    assert _C._dispatch_keys(torch.ones(1, device="meta")).has(DispatchKey.AutogradMeta)
    assert _C._dispatch_keys(torch.ones(1).to_sparse()).has(DispatchKey.SparseCPU)
    assert _C._dispatch_keys(x).highestPriorityTypeId() is DispatchKey.AutocastCPU


def test_what_operators_have_for_keys() -> None:
    assert _C._dispatch_has_kernel("aten::sin") and not _C._dispatch_has_kernel("aten::nonesuch")
    assert _C._dispatch_has_kernel_for_dispatch_key("aten::add.Tensor", "CPU")
    assert not _C._dispatch_has_kernel_for_dispatch_key("aten::sin", DispatchKey.Python)
    with pytest.raises(RuntimeError, match="operator nonesuch::sin does not exist"):
        _C._dispatch_has_kernel_for_dispatch_key("nonesuch::sin", "CPU")


# Stacks, storages, hooks --------------------------------------------------------------------------------------------


def test_modes_are_set_aside() -> None:
    mode = dispatch.TorchDispatchMode()
    with mode:
        assert dispatch.is_in_any_mode_without_ignore_compile_internals()
        with dispatch._pop_mode_temporarily() as popped:
            assert popped is mode and not dispatch.is_in_torch_dispatch_mode()
    asked = torch.overrides.BaseTorchFunctionMode()
    with asked, torch.overrides._pop_mode_temporarily() as popped:
        assert popped is asked and not torch.overrides._get_current_function_mode_stack()


def test_storages_have_numbers() -> None:
    x = torch.ones(3)
    first, second = StorageWeakRef(x.untyped_storage()), StorageWeakRef(x.view(3).untyped_storage())
    assert first == second and hash(first) == hash(second) and first == StorageWeakRef.from_weakref(first.cdata)
    assert _C._storage_id(x) == _C._storage_id(x[1:]) == first.cdata != _C._storage_id(torch.ones(3))
    used, view = _C._storage_Use_Count(first.cdata), x[1:]
    assert _C._storage_Use_Count(first.cdata) == used + 1
    del x, view
    assert first.expired()


def test_results_on_memory_of_operands() -> None:
    x = torch.ones(3)
    assert fake_utils.outputs_alias_inputs([x[1:]], x) and not fake_utils.outputs_alias_inputs(x + 1, (x,))
    assert fake_utils.outputs_are_inputs({"a": x}, x) and fake_utils.output_alias_each_other([x, x[1:]])


def test_global_hooks_are_put_back_by_assignment() -> None:
    called: list[object] = []
    modules.register_module_forward_hook(lambda *args: called.append(args))
    layer = torch.nn.Linear(1, 1)
    layer(torch.ones(1))
    assert len(called) == len(modules._global_forward_hooks) == 1
    modules._global_forward_hooks = OrderedDict()
    layer(torch.ones(1))
    assert len(called) == 1 and modules._global_is_full_backward_hook is None
    handle = modules.register_module_full_backward_hook(lambda *args: None)
    assert modules._global_is_full_backward_hook and len(modules._global_backward_hooks) == 1
    handle.remove()


# Transformations ----------------------------------------------------------------------------------------------------


def test_arguments_by_number() -> None:
    take = eager_transforms._slice_argnums
    assert take((1, 2, 3), 1) == (2,) and take((1, 2, 3), 1, as_tuple=False) == 2 and take((1, 2, 3), (0, -1)) == (1, 3)
    with pytest.raises(RuntimeError, match="must be unique"):
        take((1, 2), (0, 0))


@pytest.mark.parametrize("shape", [(), (2,)])
def test_models_are_made_as_functions(shape: tuple[int, ...]) -> None:
    weights, function, names = make_functional.functional_init(torch.nn.Linear, shape)(3, 2)
    assert names == ("weight", "bias") and weights[0].shape == (*shape, 2, 3)
    call: Callable[..., Any] = torch.func.vmap(function, (0, None)) if shape else function
    assert call(weights, (torch.ones(4, 3),)).shape == (*shape, 4, 2)
    weights, buffers, _, _, kept = make_functional.functional_init_with_buffers(torch.nn.BatchNorm1d, shape)(3)
    assert buffers[0].shape == (*shape, 3) and kept[0] == "running_mean"
    with pytest.raises(ValueError, match="more than 1 element"):
        make_functional.functional_init(torch.nn.Linear, (2, 2))(3, 2)
    with pytest.raises(RuntimeError, match="has buffers"):
        make_functional.make_functional_deprecated_v1(torch.nn.BatchNorm1d(3))


def test_samples_are_where_they_are_said_to_be() -> None:
    found, dims = restore_vmap(lambda x, y: (x + y, {"y": y}), (0, None), 3, "error")(torch.ones(3, 2), torch.ones(2))
    assert found[0].shape == (3, 2) and dims == (0, {"y": 0})


# Others -------------------------------------------------------------------------------------------------------------


def test_operators_of_an_older_way() -> None:
    @_custom_ops.custom_op("names_of_files::cube")
    def cube(x: torch.Tensor, n: int) -> torch.Tensor:  # type: ignore[empty-body]
        ...

    with pytest.raises(NotImplementedError, match="nothing was registered for it"):
        torch.ops.names_of_files.cube(torch.ones(1), 1)
    _custom_ops.impl("names_of_files::cube", func=lambda x, n: torch.tensor(x.detach().numpy() ** 3 * n))
    _custom_ops.impl_abstract("names_of_files::cube")(lambda x, n: torch.empty_like(x))
    _custom_ops.impl_save_for_backward("names_of_files::cube")(lambda inputs, output: inputs)
    _custom_ops.impl_backward("names_of_files::cube")(lambda ctx, kept, grad: {"x": grad * 3 * kept.x**2 * kept.n})
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    torch.ops.names_of_files.cube(x, 2).sum().backward()
    assert x.grad.tolist() == [6, 24] and torch.ops.names_of_files.cube(x.detach().to("meta"), 1).is_meta
    assert library_utils.is_functional_schema(torch.ops.names_of_files.cube.default._schema)
    assert library_utils.lookup_op("names_of_files::cube") is torch.ops.names_of_files.cube.default
    with pytest.raises(ValueError, match="expected `func` to have name"):
        _custom_ops.custom_op("names_of_files::other", cube)
    with pytest.raises(ValueError, match="Could not find the operator"):
        _custom_ops.impl("names_of_files::other", func=len)
    _custom_ops._destroy("names_of_files::cube")
    assert not hasattr(torch.ops.names_of_files, "cube")


def test_names_of_operators() -> None:
    assert library_utils.parse_namespace("my::sin") == ("my", "sin") and library_utils.is_builtin(
        torch.ops.aten.sin.default
    )
    with pytest.raises(ValueError, match="of the form `namespace::name`"):
        library_utils.parse_namespace("sin")


def test_pickles_that_are_not_trusted() -> None:
    given = collections.OrderedDict(a=[1, 2.5, "x"])
    assert _weights_only_unpickler.load(io.BytesIO(pickle.dumps(given, 2))) == given
    with pytest.raises(pickle.UnpicklingError):
        _weights_only_unpickler.load(io.BytesIO(pickle.dumps(os.system, 2)))


def test_sizes_are_known() -> None:
    assert (
        symbolic_shapes.guard_int(3) == 3
        and symbolic_shapes.is_concrete_int(3)
        and not symbolic_shapes.has_free_symbols(3)
    )
    assert symbolic_shapes.sym_eq([1, (2,)], [1, (2,)]) and not symbolic_shapes.sym_eq([1], [1, 2])
    assert symbolic_shapes.guard_or_false(1 > 0) and symbolic_shapes.statically_known_false(1 < 0)
    assert (
        symbolic_shapes.sym_and(True, 1)
        and not symbolic_shapes.sym_or(0, False)
        and symbolic_shapes.free_symbols(3) == set()
    )
    with pytest.raises(AssertionError, match="expected int"):
        symbolic_shapes.guard_int(1.0)  # type: ignore[arg-type]


def test_an_older_way_to_another_shape() -> None:
    x = torch.arange(6.0, requires_grad=True)
    y = Resize.apply(x, (2, 3))
    y.sum().backward()
    assert y.shape == (2, 3) and y._base is x and x.grad.tolist() == [1] * 6
    with pytest.raises(RuntimeError, match="requested resize to 2x2"):
        Resize.apply(x, (2, 2))


def test_shapes_of_outputs_and_gradients() -> None:
    x = torch.ones(2, 3, requires_grad=True) * 1
    assert torch.autograd._calculate_shape(x, torch.ones(4, 2, 3), True) == ((2, 3), (2, 3))
    edge = torch.autograd.graph.get_gradient_edge(x)
    assert torch.autograd._calculate_shape(edge, torch.ones(1), False) == ((2, 3), (1,))


def test_masks_of_inputs_and_outputs() -> None:
    x, mask = torch.arange(6.0).view(2, 3), torch.tensor([[True, False, True], [False, False, False]])
    assert torch.masked._input_mask(x, mask=mask[0]).equal(mask[:1].expand(2, 3))
    assert torch.masked._output_mask(torch.masked.sum, x, 1, mask=mask).tolist() == [True, False]
    assert torch.masked._output_mask(torch.masked.norm, x, 2.0, 0, keepdim=True, mask=mask).tolist() == [
        [True, False, True]
    ]
    assert torch.masked._output_mask(torch.masked.softmax, x, 1, mask=mask).equal(mask)
    with pytest.raises(ValueError, match="requires explicit mask"):
        torch.masked._input_mask(x)


def test_rows_of_minus_infinity_have_no_slope() -> None:
    x = torch.tensor([[-float("inf")] * 2, [1.0, 2.0]], requires_grad=True)
    torch._safe_softmax(x, 1)[:, 0].sum().backward()
    assert x.grad[0].tolist() == [0, 0] and x.grad[1, 0] > 0


def test_bits_are_set() -> None:
    x = torch.tensor([1 + 2j])
    _C._set_conj(x, True)
    assert x.is_conj() and x.tolist() == [1 - 2j]
    _C._set_neg(x, True)
    assert x.is_neg() and x.tolist() == [-1 + 2j]
    _C._set_conj(x, False)
    _C._set_neg(x, False)
    assert not x.is_conj() and not x.is_neg() and x.tolist() == [1 + 2j]
    with pytest.raises(RuntimeError, match="only complex tensors"):
        _C._set_conj(torch.ones(1), True)
