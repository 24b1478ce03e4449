"""Names that libraries ask for when they are imported: what they answer."""

import importlib.util
from importlib.machinery import PathFinder

import pytest

import rushlight as torch
from rushlight import _C, _dynamo
from rushlight.compat import model_zoo
from rushlight.compat.aliases import real_name
from rushlight.utils import _pytree as pytree


def test_keys_of_dispatch_are_sets_that_mean_nothing() -> None:
    keys = _C.DispatchKeySet(_C.DispatchKey.AutocastCPU) | _C.DispatchKeySet(_C.DispatchKey.Meta)
    assert keys.has(_C.DispatchKey.Meta) and not keys.remove(_C.DispatchKey.Meta).has(_C.DispatchKey.Meta)
    assert keys == _C.DispatchKeySet(_C.DispatchKey.Meta).add(_C.DispatchKey.AutocastCPU) and len({keys, keys}) == 1
    with _C._ExcludeDispatchKeyGuard(keys):
        assert torch.ones(2).sum().item() == 2
    assert isinstance(torch.Tensor, _C._TensorMeta) and _C._get_tracing_state() is None


def test_transforms_say_that_they_run() -> None:
    seen = []
    torch.vmap(lambda x: seen.append(_C._are_functorch_transforms_active()) or x)(torch.ones(2))
    assert seen == [True] and not _C._are_functorch_transforms_active()


def test_arguments_of_to_as_modules_understand_them() -> None:
    found = _C._nn._parse_to("cpu", torch.float64, non_blocking=True)
    assert found == (torch.device("cpu"), torch.float64, True, None)


def test_nothing_is_compiled() -> None:
    def double(x):
        return 2 * x

    assert _dynamo.disable(double) is double and _dynamo.disable()(double) is double
    assert _dynamo.allow_in_graph(double) is double and _dynamo.utils.is_compile_supported("cpu")
    assert not _dynamo.is_compiling() and not _dynamo.utils.counters
    with pytest.raises(NotImplementedError, match=r"_dynamo.explain: nothing is captured here"):
        _dynamo.explain(double)


def test_settings_of_compilers_are_kept() -> None:
    inductor = importlib.import_module("rushlight.compat.rooms._inductor.config")
    inductor.triton.unique_kernel_names = True
    with _dynamo.config.patch(suppress_errors=True), inductor.patch("max_autotune", True):
        assert _dynamo.config.suppress_errors and inductor.max_autotune
    assert not _dynamo.config.suppress_errors and not inductor.max_autotune
    with (
        pytest.raises(AttributeError, match=r"torch._dynamo.config.nonsense does not exist"),
        _dynamo.config.patch(nonsense=1),
    ):
        pass


@pytest.mark.parametrize("name", ["SymInt", "SymBool", "SymFloat"])
def test_classes_that_nothing_is_an_instance_of(name: str) -> None:
    kind = getattr(torch, name)
    assert not isinstance(torch.ones(1).size(0), kind) and not isinstance(True, kind)
    with pytest.raises(RuntimeError, match=f"torch.{name}: "):
        kind()


def test_nothing_is_exported_to_onnx() -> None:
    onnx = torch.onnx
    assert (
        onnx.symbolic_helper.parse_args("v", "i")(test_graphs_of_cuda_are_named_alone)
        is test_graphs_of_cuda_are_named_alone
    )
    onnx.register_custom_op_symbolic("tests::op", print, 11)
    assert not onnx.is_in_onnx_export() and onnx.TensorProtoDataType.INT64 == 7
    with pytest.raises(NotImplementedError, match=r"rushlight exports no ONNX; save model.state_dict\(\)"):
        onnx.export(None, None, "model.onnx")


def test_graphs_of_cuda_are_named_alone() -> None:
    with pytest.raises(RuntimeError, match="there is no GPU"):
        torch.cuda.CUDAGraph()
    assert model_zoo.load_url is torch.hub.load_state_dict_from_url and list(model_zoo.tqdm([1])) == [1]


@pytest.fixture
def pair():
    class Pair:
        def __init__(self, a, b, note):
            self.a, self.b, self.note = a, b, note

    pytree.register_pytree_node(Pair, lambda p: ([p.a, p.b], p.note), lambda values, note: Pair(*values, note))
    yield Pair
    pytree.SUPPORTED_NODES.pop(Pair)


def test_classes_can_be_nodes_of_trees(pair) -> None:
    tree = {"x": [pair(1, (2,), "n")], "y": 3}
    leaves, spec = pytree.tree_flatten(tree)
    again = pytree.tree_unflatten([10 * n for n in leaves], spec)
    assert leaves == [1, 2, 3] and (again["x"][0].b, again["x"][0].note) == ((20,), "n")
    assert spec != pytree.tree_flatten({"x": [pair(1, (2,), "other")], "y": 3})[1]
    summed = torch.vmap(lambda p: pair(p.a.sum(), (p.b[0] * 2,), ""))(pair(torch.ones(3, 2), (torch.ones(3),), ""))
    assert summed.a.tolist() == [2, 2, 2] and summed.b[0].tolist() == [2, 2, 2]
    with pytest.raises(ValueError, match="already registered"):
        pytree.register_pytree_node(pair, None, None)


def test_ways_to_leaves() -> None:
    tree = {"a": [1, 2], "b": (3,)}
    ways, _ = pytree.tree_flatten_with_path(tree)
    assert [(pytree.keystr(way), leaf) for way, leaf in ways] == [("['a'][0]", 1), ("['a'][1]", 2), ("['b'][0]", 3)]
    assert pytree.tree_map_with_path(lambda way, leaf: len(way) + leaf, tree) == {"a": [3, 4], "b": (5,)}
    assert pytree.tree_flatten(1)[1] == pytree.LeafSpec() and isinstance(pytree.tree_flatten(1)[1], pytree.LeafSpec)
    assert issubclass(_dynamo._trace_wrapped_higher_order_op.TransformGetItemToIndex, torch.overrides.TorchFunctionMode)


def test_the_writer_of_tensorboard_is_a_module_of_its_package() -> None:
    """Whether the package tensorboard is here or not: nothing is imported."""
    package = importlib.util.find_spec(real_name("torch.utils.tensorboard") or "")
    assert package is not None and package.submodule_search_locations
    writer = real_name("torch.utils.tensorboard.writer") or ""
    assert writer == f"{package.name}.writer"
    assert PathFinder.find_spec(writer, package.submodule_search_locations) is not None
