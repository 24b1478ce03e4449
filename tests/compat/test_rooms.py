"""Modules that libraries import and scripts seldom use: what can be asked is answered, the rest says why not."""

import typing
from datetime import timedelta

import pytest
from tests.processes import printed

import rushlight as torch
from rushlight import absent
from rushlight.absent import walls
from rushlight.compat.rooms import _tensor_str, _utils, flop_counter


@pytest.mark.parametrize("name", sorted(walls.WALLS))
def test_modules_of_names_alone_refuse_with_a_reason(name: str) -> None:
    module = walls.room(f"rushlight.{name}")
    assert module is walls.room(f"rushlight.{name}")
    for given in walls.WALLS[name].classes.split():
        kind = getattr(module, given)
        assert not isinstance(torch.ones(1), kind) and absent.is_absent(kind)
        with pytest.raises(NotImplementedError, match=given):
            kind()
    for given in walls.WALLS[name].functions.split():
        with pytest.raises(NotImplementedError, match=f"torch.{name.removeprefix('compat.rooms.')}.{given}: "):
            getattr(module, given)(torch.ones(1))
    assert not hasattr(module, "nonsense")


def test_a_class_of_several_such_modules_is_one() -> None:
    fsdp = torch.distributed.fsdp
    assert fsdp.FullyShardedDataParallel is fsdp.fully_sharded_data_parallel.FullyShardedDataParallel
    assert torch.distributed.DeviceMesh is torch.distributed.device_mesh.DeviceMesh


IMPORTS = """
from rushlight.compat import imports
imports.install()
import torch, typing, importlib.util
from torch.distributed.fsdp.wrap import transformer_auto_wrap_policy
from torch.distributed.tensor import DTensor, distribute_tensor
from torch._subclasses.fake_tensor import FakeTensor, is_fake
from torch.utils.data.dataloader import _BaseDataLoaderIter, _DatasetKind, _MultiProcessingDataLoaderIter
import torch.cuda.nvtx, torch.xpu, torch.export, torch.utils.flop_counter, torch.distributed.rpc.api as api
assert torch.torch is torch and torch.xpu.__name__ == "torch.xpu" and not is_fake(torch.ones(1))
assert importlib.util.find_spec("torch.distributed.nonsense") is None

class Net(torch.nn.Module):
    size: "int"

assert typing.get_type_hints(Net)["size"] is int
try:
    api._require_initialized(print)()
except NotImplementedError as error:
    assert "no other processes" in str(error)
else:
    raise AssertionError
"""


def test_they_are_imported_as_torch() -> None:
    printed("-W", "error", "-c", IMPORTS)


@pytest.mark.parametrize("kind", ["xpu", "mps", "mtia", "cuda"])
def test_accelerators_that_are_not_there(kind: str) -> None:
    room = getattr(torch, kind)
    assert not room.is_available() and room.device_count() == 0
    with pytest.raises((AssertionError, RuntimeError), match=f"torch.{kind}.get_rng_state: there is no"):
        room.get_rng_state()
    if kind != "mps":
        assert room.get_rng_state_all() == [] and room.get_rng_state_all() is not room.get_rng_state_all()
        room.manual_seed_all(1)
        with pytest.raises(RuntimeError, match="there is no"), room.device(0):
            raise AssertionError
        with room.device(-1):
            pass


def test_contexts_of_cuda_that_choose_nothing() -> None:
    with torch.cuda.StreamContext(None), torch.cuda.device_of(torch.ones(1)):
        assert torch.cuda.random.get_rng_state_all() == []
    torch.cuda.set_rng_state_all([])
    with pytest.raises(RuntimeError, match="no CUDA device to give a state to"):
        torch.cuda.set_rng_state_all([torch.ones(1)])
    assert not isinstance(torch.ones(1), torch.cuda.FloatTensor) and not torch.cuda.is_current_stream_capturing()


def test_checks_as_functions() -> None:
    torch._check(True)
    torch._check_tensor_all(torch.tensor([True, True]))
    torch._assert_async(torch.tensor(1))
    for check, error in ((torch._check, RuntimeError), (torch._check_index, IndexError), (torch._check_value, ValueError),
                         (torch._check_type, TypeError), (torch._check_not_implemented, NotImplementedError)):  # fmt: skip
        with pytest.raises(error, match="seven"):
            check(False, lambda: "seven")
    with pytest.raises(TypeError, match="cond must be a bool"):
        torch._check(1)
    with pytest.raises(RuntimeError, match="seven"):
        torch._check_tensor_all(torch.tensor([True, False]), lambda: "seven")
    with pytest.raises(RuntimeError):
        torch._check_is_size(-1)


def test_numbers_that_a_compiler_would_not_know() -> None:
    assert torch.sym_int(2.7) == 2 and torch.sym_max(1, 2.0) == 2.0 and torch.sym_min(1, 2) == 1
    assert torch.sym_ite(False, 1, 2) == 2 and torch.sym_not(False) and torch.sym_sum([1, 2]) == 3
    assert torch._shape_as_tensor(torch.ones(2, 3)).tolist() == [2, 3]


def test_rows_by_their_beginnings_and_by_their_numbers() -> None:
    rows, columns = torch.tensor([0, 0, 2, 3]), torch.tensor([1, 2, 0, 3])
    begins = torch._convert_indices_from_coo_to_csr(rows, 5)
    assert begins.tolist() == [0, 2, 2, 3, 4, 4]
    assert torch._convert_indices_from_csr_to_coo(begins, columns).tolist() == [rows.tolist(), columns.tolist()]


def test_parts_of_a_tensors_text() -> None:
    with _tensor_str.printoptions(precision=2):
        assert _tensor_str._tensor_str(torch.tensor([1.234]), 0) == "[1.23]"
    assert _tensor_str._str(torch.tensor([1.234])) == "tensor([1.2340])"
    assert _tensor_str._add_suffixes("Index([1]", ["dim_size=3"], 6, False) == "Index([1], dim_size=3)"


def test_tensors_flattened_into_one_and_back() -> None:
    parts = [torch.ones(2, 2), torch.zeros(3)]
    flat = _utils._flatten_dense_tensors(parts)
    assert [p.shape for p in _utils._unflatten_dense_tensors(flat, parts)] == [(2, 2), (3,)] and flat.shape == (7,)
    assert _utils._get_device_index("cuda:1") == 1 and _utils._get_device_index("cpu", allow_cpu=True) == -1
    assert _utils._element_size(torch.float64) == 8 and _utils._import_dotted_name("os.path.join")
    with pytest.raises(ValueError, match="specified index"):
        _utils._get_device_index("cuda")


def test_sizes_that_a_captured_program_would_leave_open() -> None:
    batch, other = torch.export.dims("batch", "other", min=2, max=8)
    assert repr(batch) == "Dim('batch', min=2, max=8)" and other.max == 8 and torch.export.Dim.AUTO
    with pytest.raises(AssertionError, match="inconsistent"):
        torch.export.Dim("x", min=3, max=2)


def test_stores_of_one_process() -> None:
    store = torch.distributed.TCPStore("localhost", 0, 1, True, timedelta(seconds=1))
    store.set("a", "1")
    assert store.add("a", 2) == 3 and store.get("a") == b"3" and store.check(["a"]) and store.num_keys() == 2
    inner = torch.distributed.PrefixStore("p", store)
    inner.set("a", "x")
    assert store.get("p/a") == b"x" and inner.get("a") == b"x" and inner.delete_key("a") and not inner.check(["a"])
    assert store.compare_set("b", "", "new") == b"new" and store.compare_set("b", "old", "newer") == b"new"
    with pytest.raises(RuntimeError, match="no value of z"):
        store.wait(["z"])
    assert sorted(store.list_keys()) == ["a", "b"]


@pytest.fixture
def alone() -> typing.Iterator[None]:
    torch.distributed.init_process_group("gloo", world_size=1, rank=0)
    yield
    torch.distributed.destroy_process_group()


@pytest.mark.usefixtures("alone")
def test_gradients_pass_through_collectives_of_one() -> None:
    from rushlight.distributed import distributed_c10d, nn

    x = torch.ones(3, requires_grad=True)
    (nn.all_gather(x)[0] + nn.functional.all_reduce(x) + nn.broadcast(x, 0)).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0, 3.0]
    dist = torch.distributed
    assert dist.get_global_rank(None, 0) == dist.get_group_rank(None, 0) == 0
    assert distributed_c10d._get_default_group() is dist.group.WORLD and not dist._rank_not_in_group(None)
    with pytest.raises(ValueError, match="no process but this one"):
        dist.batch_isend_irecv([dist.P2POp(dist.isend, x, 1)])
    with pytest.raises(ValueError, match="Expected ``op`` to be of type"):
        dist.P2POp(print, x, 0)


def test_operations_are_counted_by_module_forward_and_backward() -> None:
    net = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.ReLU(), torch.nn.Linear(5, 2))
    with flop_counter.FlopCounterMode(display=False) as counter:
        net(torch.randn(7, 4)).sum().backward()
    assert counter.get_total_flops() == 980
    counts = counter.get_flop_counts()
    aten = torch.ops.aten
    assert counts["Global"] == counts["Sequential"] == {aten.addmm: 420, aten.mm: 560}
    assert counts["Sequential.0"] == {aten.addmm: 280, aten.mm: 280}
    assert "Sequential.2" in counter.get_table()
    assert counter.flop_counts == counts


def test_operations_of_convolution_and_sums_over_labels(capsys: pytest.CaptureFixture[str]) -> None:
    conv = torch.nn.Conv2d(3, 8, 3, padding=1, stride=2)
    with flop_counter.FlopCounterMode(display=True) as counter:
        conv(torch.randn(2, 3, 8, 8)).sum().backward()
        torch.einsum("ij,jk->ik", torch.randn(3, 4), torch.randn(4, 5))
    assert counter.get_total_flops() == 2 * 13824 + 120 and "aten.convolution" in capsys.readouterr().out
    with pytest.raises(NotImplementedError, match="by formulas"):
        flop_counter.FlopCounterMode(custom_mapping={torch.ops.aten.threshold_backward: lambda *args, **kwargs: 1})


def test_operations_of_transposed_convolution_and_attention() -> None:
    x, w = torch.randn(2, 3, 8, 8, requires_grad=True), torch.randn(3, 4, 3, 3, requires_grad=True)
    with flop_counter.FlopCounterMode(display=False) as counter:
        torch.nn.functional.conv_transpose2d(x, w).sum().backward()
    assert counter.get_total_flops() == 3 * 27648  # as PyTorch: by input and by weight as many as forward
    q = torch.randn(1, 2, 4, 8)
    with flop_counter.FlopCounterMode(display=False) as counter:
        torch.nn.functional.scaled_dot_product_attention(q, q, q)
    assert counter.get_total_flops() == 2 * (2 * 2 * 4 * 4 * 8)  # two products; PyTorch's counter knows none on a CPU


def test_points_that_fill_the_cube_evenly() -> None:
    pytest.importorskip("scipy")
    engine = torch.quasirandom.SobolEngine(2)
    assert engine.draw(4).tolist() == [[0.0, 0.0], [0.5, 0.5], [0.75, 0.25], [0.25, 0.75]]
    assert engine.fast_forward(1).num_generated == 5 and engine.draw(dtype=torch.float64).dtype is torch.float64
    scrambled = torch.quasirandom.SobolEngine(3, scramble=True, seed=1)
    first = scrambled.draw_base2(3)
    assert (
        first.shape == (8, 3)
        and bool(((first >= 0) & (first < 1)).all())
        and torch.equal(scrambled.reset().draw(8), first)
    )
    with pytest.raises(ValueError, match="power of 2"):
        torch.quasirandom.SobolEngine(1).fast_forward(3).draw_base2(1)
    with pytest.raises(ValueError, match="range of dimensionality"):
        torch.quasirandom.SobolEngine(0)


def test_what_is_missing_says_why_and_is_missing() -> None:
    for name, reason in (
        ("quantize_per_tensor", "no quantized tensors"),
        ("JITException", "TorchScript"),
    ):
        assert not hasattr(torch, name)
        with pytest.raises(AttributeError, match=f"no attribute '{name}': .*{reason}"):
            getattr(torch, name)
    with pytest.raises(AttributeError, match=r"no attribute 'nonsense'$"):
        torch.nonsense
    from rushlight.absent.reasons import why

    assert "no quantized tensors" in why("torch.ao.ns.fx", "graph_matcher") and why("torch.nn", "Nonsense") is None


def test_the_processor_is_a_device_that_is_there() -> None:
    cpu = torch.cpu
    assert cpu.is_available() and cpu.is_initialized() and cpu.device_count() == 1 and cpu.current_device() == "cpu"
    with cpu.stream(cpu.Stream()), cpu.StreamContext(None):
        cpu.synchronize()
        assert cpu.Event().query() and cpu.current_stream() is cpu.current_stream()
    assert cpu.get_capabilities()["architecture"] == cpu.machine()


OTHER_PLACES = """
from rushlight.compat import imports
imports.install()
import torch
from torch.functional import einsum, norm
from torch.amp.autocast_mode import autocast
from torch.amp.grad_scaler import GradScaler
from torch.storage import TypedStorage, UntypedStorage
assert einsum is torch.einsum and norm is torch.norm and autocast is torch.amp.autocast and GradScaler is torch.amp.GradScaler
assert isinstance(torch.ones(2).untyped_storage(), UntypedStorage) and isinstance(torch.ones(2).storage(), TypedStorage)
"""


def test_names_by_the_files_in_which_pytorch_keeps_them() -> None:
    printed("-W", "error", "-c", OTHER_PLACES)


def test_names_of_sharding_that_trainers_import() -> None:
    from rushlight.distributed.distributed_c10d import _get_global_rank
    from rushlight.distributed.fsdp import wrap
    from rushlight.distributed.fsdp._common_utils import _get_param_to_fqns, _is_fsdp_flattened
    from rushlight.distributed.fsdp.fully_sharded_data_parallel import FLAT_PARAM, OptimStateKeyType

    layer = torch.nn.Linear(2, 2)
    shared = torch.nn.Sequential(layer, layer)
    assert list(_get_param_to_fqns(shared).values()) == [["0.weight"], ["0.bias"]]
    assert _get_param_to_fqns(shared, dedup_shared_params=False)[layer.bias] == ["0.bias", "1.bias"]
    assert not _is_fsdp_flattened(layer.weight) and FLAT_PARAM == "_flat_param" and len(OptimStateKeyType) == 2
    assert issubclass(wrap.CustomPolicy, wrap._Policy) and isinstance(wrap._ConfigAutoWrap, type)
    with pytest.warns(FutureWarning, match="get_global_rank"), pytest.raises(ValueError):
        _get_global_rank(None, 0)


def test_functions_by_name_are_functions() -> None:
    names = dir(torch._C._VariableFunctions)
    assert "conv2d" in names and "channels_last" not in names
    assert all(callable(getattr(torch._C._VariableFunctions, name)) for name in names)
    with pytest.raises(AttributeError, match="channels_last"):
        _ = torch._C._VariableFunctions.channels_last
    assert torch._C._functorch._unwrap_for_grad and torch._C._functorch._wrap_for_grad
