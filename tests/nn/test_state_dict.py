"""state_dict and load_state_dict."""

import copy
import pickle
from collections import OrderedDict
from typing import Any

import pytest

import rushlight as torch
from rushlight import nn


def net() -> Any:
    return nn.Sequential(OrderedDict(lin=nn.Linear(2, 3), bn=nn.BatchNorm1d(3), tail=nn.Sequential(nn.Linear(3, 1))))


def same(a: Any, b: Any) -> bool:
    return list(a) == list(b) and all(torch.equal(a[k], b[k]) for k in a)


def test_names_and_metadata() -> None:
    state = net().state_dict()
    assert list(state) == [
        "lin.weight", "lin.bias", "bn.weight", "bn.bias", "bn.running_mean", "bn.running_var",
        "bn.num_batches_tracked", "tail.0.weight", "tail.0.bias",
    ]  # fmt: skip
    assert dict(state._metadata) == {
        "": {"version": 1}, "lin": {"version": 1}, "bn": {"version": 2}, "tail": {"version": 1},
        "tail.0": {"version": 1},
    }  # fmt: skip


def test_tensors_are_detached_and_shared() -> None:
    m = net()
    state = m.state_dict()
    assert not state["lin.weight"].requires_grad
    assert state["lin.weight"].data_ptr() == m.lin.weight.data_ptr()
    assert m.state_dict(keep_vars=True)["lin.weight"] is m.lin.weight
    assert list(m.lin.state_dict(prefix="x.")) == ["x.weight", "x.bias"]


def test_round_trip() -> None:
    a, b = net(), net()
    assert not same(a.state_dict(), b.state_dict())
    kept = b.lin.weight
    assert repr(b.load_state_dict(a.state_dict())) == "<All keys matched successfully>"
    assert same(a.state_dict(), b.state_dict()) and b.lin.weight is kept
    assert same(pickle.loads(pickle.dumps(a.state_dict())), a.state_dict())


def test_every_wrong_name_and_shape_is_listed() -> None:
    m = net()
    state = m.state_dict()
    del state["bn.bias"]
    state["tail.0.other"] = torch.ones(1)
    state["lin.weight"] = torch.ones(4, 2)
    with pytest.raises(RuntimeError) as caught:
        m.load_state_dict(state)
    assert str(caught.value) == (
        "Error(s) in loading state_dict for Sequential:\n"
        '\tMissing key(s) in state_dict: "bn.bias". \n'
        '\tUnexpected key(s) in state_dict: "tail.0.other". \n'
        "\tsize mismatch for lin.weight: copying a param with shape torch.Size([4, 2]) from checkpoint, the shape in "
        "current model is torch.Size([3, 2])."
    )
    assert caught.value.__notes__ == ["[rushlight explain state-dict-of-another-model]"]


def test_not_strict() -> None:
    found = net().load_state_dict({"lin.weight": torch.ones(3, 2), "x": torch.ones(1)}, strict=False)
    assert found.unexpected_keys == ["x"] and "lin.bias" in found.missing_keys
    with pytest.raises(RuntimeError, match="size mismatch"):
        net().load_state_dict({"lin.weight": torch.ones(3)}, strict=False)


def test_assign_takes_the_tensors() -> None:
    m = net()
    state = {k: v.double() if v.is_floating_point() else v for k, v in m.state_dict().items()}
    m.load_state_dict(state, assign=True)
    assert m.lin.weight.dtype is torch.float64 and isinstance(m.lin.weight, nn.Parameter)
    assert m.lin.weight.data_ptr() == state["lin.weight"].data_ptr()
    assert m.bn.running_mean is state["bn.running_mean"]


def test_loading_converts_dtypes() -> None:
    m = net()
    m.load_state_dict({k: v.double() if v.is_floating_point() else v for k, v in m.state_dict().items()})
    assert m.lin.weight.dtype is torch.float32


def test_hooks_change_names() -> None:
    class Renamed(nn.Linear):
        def __init__(self) -> None:
            super().__init__(1, 1)
            self.register_state_dict_post_hook(self.save_as)
            self.register_load_state_dict_pre_hook(self.load_as)

        @staticmethod
        def save_as(module: Any, state: Any, prefix: str, metadata: Any) -> None:
            state[prefix + "w"] = state.pop(prefix + "weight")

        @staticmethod
        def load_as(module: Any, state: Any, prefix: str, *rest: Any) -> None:
            state[prefix + "weight"] = state.pop(prefix + "w")

    m = nn.Sequential(Renamed())
    state = m.state_dict()
    assert list(state) == ["0.bias", "0.w"]
    m.load_state_dict(state)
    assert list(state) == ["0.bias", "0.w"]


def test_post_hooks_return_nothing() -> None:
    m = nn.Linear(1, 1)
    m.register_state_dict_post_hook(lambda *_: 3)
    with pytest.raises(RuntimeError, match="must return None"):
        m.state_dict()


def test_extra_state() -> None:
    class Counting(nn.Module):
        calls = 0

        def get_extra_state(self) -> Any:
            return self.calls

        def set_extra_state(self, state: Any) -> None:
            self.calls = state

    a, b = nn.Sequential(Counting()), nn.Sequential(Counting())
    a[0].calls = 7
    assert list(a.state_dict()) == ["0._extra_state"]
    b.load_state_dict(a.state_dict())
    assert b[0].calls == 7
    with pytest.raises(RuntimeError, match=r'Missing key\(s\) in state_dict: "0._extra_state"'):
        b.load_state_dict({})


def test_buffers_that_are_not_persistent_stay_out() -> None:
    m = nn.Module()
    m.register_buffer("a", torch.ones(1), persistent=False)
    assert not m.state_dict()
    m.register_buffer("a", torch.ones(1))
    assert list(m.state_dict()) == ["a"]


def test_modules_are_copied_and_pickled_whole() -> None:
    m = net().eval()
    m.lin.weight.requires_grad_(False)
    for other in (copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
        assert repr(other) == repr(m) and same(other.state_dict(), m.state_dict())
        assert not other.training and not other.lin.weight.requires_grad and other.lin.bias.requires_grad
        assert other.lin.weight.data_ptr() != m.lin.weight.data_ptr()


def test_lazy_modules_load() -> None:
    made = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
    lazy = nn.Sequential(nn.LazyLinear(3), nn.LazyBatchNorm1d())
    lazy.load_state_dict(made.state_dict())
    assert same(lazy.state_dict(), made.state_dict())
    lazy(torch.ones(2, 4))
    assert [type(m).__name__ for m in lazy] == ["Linear", "BatchNorm1d"]


def test_a_state_is_an_ordered_dict_that_anything_can_unpickle() -> None:
    state = nn.Sequential(nn.Linear(1, 1)).state_dict()
    assert type(state) is OrderedDict and list(state._metadata) == ["", "0"]  # type: ignore[attr-defined]
    assert b"StateDict" not in pickle.dumps(state)
    keys = nn.Linear(1, 1).load_state_dict({}, strict=False)
    assert type(keys).__name__ == "_IncompatibleKeys"


def test_registered_hooks_are_found_as_they_were_given() -> None:
    """Modules that write `state_dict` or `_load_from_state_dict` anew call them from the dictionaries."""
    module, seen = nn.Linear(1, 1), []
    post, private = (lambda m, state, prefix, metadata: None), (lambda m, state, prefix, metadata: dict(state, more=1))
    handle = module.register_state_dict_post_hook(post)
    module._register_state_dict_hook(private)
    assert list(module._state_dict_hooks.values()) == [post, private] and "more" in module.state_dict()
    handle.remove()
    assert list(module._state_dict_hooks.values()) == [private] and not module._state_dict_hooks_that_keep
    module.register_load_state_dict_pre_hook(lambda m, *rest: seen.append((m, len(rest))))
    module._register_load_state_dict_pre_hook(lambda *rest: seen.append((None, len(rest))))
    for hook in module._load_state_dict_pre_hooks.values():
        hook({}, "", {}, True, [], [], [])
    assert seen == [(module, 7), (None, 7)]


def test_norms_take_what_they_load_by_name() -> None:
    """As modules of others call it that write `_load_from_state_dict` anew."""
    module, missing = nn.BatchNorm1d(2), []
    lists = {"missing_keys": missing, "unexpected_keys": [], "error_msgs": []}
    module._load_from_state_dict(state_dict={}, prefix="", local_metadata={}, strict=True, **lists)
    assert missing == ["weight", "bias", "running_mean", "running_var"]


def test_hooks_of_a_copied_module_are_given_the_copy() -> None:
    seen = []
    module = nn.Linear(1, 1)
    module.register_load_state_dict_pre_hook(lambda m, *rest: seen.append(m))
    other = copy.deepcopy(module)
    other.load_state_dict(module.state_dict())
    assert seen == [other]
