"""A group of one process needs no launcher, several do, and without a group everything asks for one."""

from collections.abc import Iterator
from typing import Any

import pytest

import rushlight as torch

dist = torch.distributed
T = torch.tensor


@pytest.fixture
def group() -> Iterator[None]:
    """The default group."""
    dist.init_process_group("gloo", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """No launcher has set anything."""
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "TORCHELASTIC_RUN_ID"):
        monkeypatch.delenv(name, raising=False)


def test_without_a_group_everything_asks_for_one() -> None:
    assert dist.is_available() and not dist.is_initialized() and dist.group.WORLD is None
    assert not dist.is_nccl_available() and not dist.is_torchelastic_launched()
    x = torch.ones(1)
    for call in (dist.get_rank, dist.get_world_size, dist.get_backend, dist.barrier, dist.new_group,
                 lambda: dist.all_reduce(x), lambda: dist.broadcast(x, 0), lambda: dist.all_gather_object([None], 1),
                 lambda: torch.utils.data.DistributedSampler(range(3)),
                 lambda: torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))):  # fmt: skip
        with pytest.raises(ValueError, match="Default process group has not been initialized"):
            call()
    with pytest.raises(AssertionError):
        dist.destroy_process_group()


def test_questions_are_answered(group: None) -> None:
    assert dist.is_initialized() and (dist.get_rank(), dist.get_world_size(), dist.get_backend()) == (0, 1, "gloo")
    assert dist.get_process_group_ranks() == [0] and isinstance(dist.group.WORLD, dist.ProcessGroup)
    other = dist.new_group([0], backend="nccl")
    assert dist.get_backend(other) == "nccl" and dist.get_rank(other) == 0
    dist.destroy_process_group(other)
    assert dist.is_initialized() and dist.get_node_local_rank(fallback_rank=0) == 0
    with pytest.raises(ValueError, match="twice"):
        dist.init_process_group("gloo", rank=0, world_size=1)
    with pytest.raises(ValueError, match=r"expected different ranks below 1, got \[1\]"):
        dist.new_group([1])
    with pytest.raises(RuntimeError, match="LOCAL_RANK"):
        dist.get_node_local_rank()


@pytest.mark.parametrize(
    "arguments", [{}, {"init_method": "env://"}, {"backend": "nccl"}, {"backend": "cpu:gloo,cuda:nccl"}]
)
def test_a_group_is_made_from_the_environment(arguments: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="environment variable RANK expected, but not set"):
        dist.init_process_group(**arguments)
    monkeypatch.setenv("WORLD_SIZE", "1")
    monkeypatch.setenv("RANK", "0")
    dist.init_process_group(**arguments)
    assert dist.get_world_size() == 1
    dist.destroy_process_group()
    assert not dist.is_initialized()


def test_a_group_is_made_from_an_address() -> None:
    dist.init_process_group(init_method="tcp://127.0.0.1:29500?rank=0&world_size=1")
    dist.destroy_process_group()
    with pytest.raises(ValueError, match="tcp:// rendezvous: world size parameter missing"):
        dist.init_process_group(init_method="tcp://127.0.0.1:29500", rank=0)


def test_what_is_missing_where_processes_are_to_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=r"MASTER_ADDR expected, but not set: .*rushlight run -n"):
        dist.init_process_group("gloo", rank=1, world_size=4)
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("MASTER_ADDR", "localhost")
    with pytest.raises(ValueError, match="MASTER_PORT expected, but not set"):
        dist.init_process_group()
    with pytest.raises(ValueError, match="expected a rank below world_size=1, got 1"):
        dist.init_process_group(world_size=1)
    for given, words in (({"store": dist.HashStore()}, "world_size must be positive"), ({"store": dist.HashStore(), "world_size": 2}, "rank must be non-negative"),
                         ({"store": dist.HashStore(), "init_method": "env://"}, "both init_method and store")):  # fmt: skip
        with pytest.raises(AssertionError, match=words):
            dist.init_process_group("gloo", **given)
    with pytest.raises(ValueError, match=r"expected a backend of .*, got 'pigeons'"):
        dist.init_process_group("pigeons", rank=0, world_size=1)
    spawn = torch.multiprocessing.spawn  # imported outside of what looks like a launcher
    with monkeypatch.context() as launched, pytest.raises(NotImplementedError, match="join=False"):
        launched.setenv("PMI_RANK", "0")
        spawn(print, nprocs=2, join=False)
    assert not dist.is_initialized()


@pytest.mark.parametrize("op", [op for op in dist.ReduceOp if op.name not in ("PREMUL_SUM", "UNUSED")])
def test_a_reduction_over_one_process_is_the_tensor(group: None, op: Any) -> None:
    x = T([1, -2]) if op.name in ("BAND", "BOR", "BXOR") else T([1.0, -2.0], requires_grad=True)
    assert dist.all_reduce(x, op=op) is None and dist.reduce(x, 0, op) is None and dist.broadcast(x, 0) is None
    work = dist.all_reduce(x, op, async_op=True)
    assert x.tolist() == [1, -2] and work.wait() and work.is_completed()


def test_what_is_gathered_or_scattered_is_copied(group: None) -> None:
    x = T([1.0, 2.0], requires_grad=True)
    for call in (lambda out: dist.all_gather([out], x), lambda out: dist.gather(x, [out]),
                 lambda out: dist.scatter(out, [x]), lambda out: dist.reduce_scatter(out, [x]),
                 lambda out: dist.all_gather_into_tensor(out, x), lambda out: dist.reduce_scatter_tensor(out, x),
                 lambda out: dist.all_to_all([out], [x]), lambda out: dist.all_to_all_single(out, x)):  # fmt: skip
        out = torch.zeros(2)
        assert call(out) is None and out.tolist() == [1, 2] and not out.requires_grad
    stacked = torch.zeros(1, 2)
    dist.all_gather_into_tensor(stacked, x)
    assert stacked.tolist() == [[1, 2]] and dist.barrier(async_op=True).wait() and dist.monitored_barrier() is None


def test_objects(group: None) -> None:
    found, gathered, scattered = [None], [None], [None]
    dist.all_gather_object(found, "a")
    dist.gather_object("b", gathered)
    dist.scatter_object_list(scattered, ["c"])
    dist.broadcast_object_list(found, src=0)
    assert (found, gathered, scattered) == (["a"], ["b"], ["c"])


def test_wrong_arguments_of_collectives(group: None) -> None:
    x = torch.ones(3)
    with pytest.raises(TypeError, match=r"all_reduce: Invalid function argument\. Expected parameter `tensor`"):
        dist.all_reduce([x])
    with pytest.raises(ValueError, match="Global rank 1 is not part of group"):
        dist.broadcast(x, src=1)
    with pytest.raises(ValueError, match="all_gather: expected a list with one element"):
        dist.all_gather([], x)
    with pytest.raises(ValueError, match="expected an output of 3 elements"):
        dist.all_gather([torch.ones(2)], x)
    for call in (dist.send, dist.recv):
        with pytest.raises(ValueError, match="no process but this one"):
            call(x, 0)


def test_a_module_for_several_processes_on_one(group: None) -> None:
    torch.manual_seed(0)
    model = torch.nn.Linear(2, 1)
    parallel = torch.nn.parallel.DistributedDataParallel(model, device_ids=[0], find_unused_parameters=True)
    assert parallel.module is model and list(parallel.state_dict()) == ["module.weight", "module.bias"]
    x = torch.ones(3, 2)
    assert torch.equal(parallel(x), model(x))
    with parallel.no_sync():
        assert not parallel.require_backward_grad_sync
        parallel(x).sum().backward()
    with parallel.join():
        parallel(x).sum().backward()
    assert parallel.require_backward_grad_sync and model.weight.grad.tolist() == [[6, 6]]
    with pytest.raises(ValueError, match="contain a single element"):
        torch.nn.parallel.DistributedDataParallel(model, device_ids=[0, 1])
    with pytest.raises(RuntimeError, match="is not needed"):
        torch.nn.parallel.DistributedDataParallel(torch.nn.ReLU())


def test_a_sampler_asks_the_group(group: None) -> None:
    sampler = torch.utils.data.DistributedSampler(range(5), shuffle=False)
    assert (sampler.num_replicas, sampler.rank, list(sampler)) == (1, 0, [0, 1, 2, 3, 4])


def test_multiprocessing_is_the_standard_librarys() -> None:
    import multiprocessing

    processes = torch.multiprocessing
    assert processes.Process is multiprocessing.Process and processes.cpu_count() == multiprocessing.cpu_count()
    assert set(multiprocessing.__all__) <= set(processes.__all__)
    processes.set_sharing_strategy("file_system")
    assert processes.get_sharing_strategy() == "file_system"
    processes.set_sharing_strategy("file_descriptor")
    with pytest.raises(AssertionError, match="pigeon"):
        processes.set_sharing_strategy("pigeon")


def test_what_is_no_communication_hook_is_refused() -> None:
    from rushlight.nn.parallel.distributed import check_hook

    def of_number(state: object, bucket: int) -> None: ...

    def of_bucket(state: object, bucket: dist.GradBucket) -> Any: ...

    check_hook(of_bucket)
    check_hook(lambda state, bucket: None)
    with pytest.raises(TypeError, match="must be callable"):
        check_hook(3)
    with pytest.raises(ValueError, match=r"bucket annotation should be dist\.GradBucket"):
        check_hook(of_number)


def test_collectives_of_one_tensor_have_their_newer_names(group: None) -> None:
    found, x = torch.zeros(2), torch.tensor([1.0, 2.0])
    dist.all_gather_single(found, x)
    assert found.tolist() == [1, 2]
    dist.reduce_scatter_single(found, x * 2)
    assert found.tolist() == [2, 4]
    from rushlight.distributed import _functional_collectives as funcol

    assert funcol.all_gather_single(x, 0, None).tolist() == [1, 2]
    assert funcol.reduce_scatter_single(x, "sum", 0, None).tolist() == [1, 2]


def test_methods_of_groups_say_what_does_not_fit(group: None) -> None:
    pg: Any = dist.group.WORLD
    x = torch.ones(2)
    assert pg.allreduce([x]).wait() and pg.broadcast(x, 0).result()[0] is x
    with pytest.raises(RuntimeError, match="single-element"):
        pg.reduce([x, x], 0)
    with pytest.raises(RuntimeError, match="invalid root rank: 3"):
        pg.broadcast(x, 3)
    assert not isinstance(pg, dist.ProcessGroupGloo)
    alone = dist.ProcessGroupGloo(dist.HashStore(), 0, 1)
    assert alone.allreduce([x]).wait() and alone.name() == "gloo"
