"""Layers and what belongs to them, in programs of one line that both libraries answer alike: layouts, refusals, copies."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from tests.parity.test_small_answers import answer

import rushlight

reference = pytest.importorskip("torch")
pytestmark = pytest.mark.parity

PROGRAMS = """
torch.nn.Conv2d(1, 8, 3, padding=1).to(memory_format=torch.channels_last)(torch.rand(2, 1, 6, 6)).stride()
torch.nn.Conv2d(1, 8, 3, padding=1)(torch.rand(2, 1, 6, 6).to(memory_format=torch.channels_last)).stride()
torch.nn.Conv2d(4, 8, 1).to(memory_format=torch.channels_last)(torch.rand(2, 4, 6, 6)).stride()
torch.nn.ConvTranspose2d(1, 8, 3)(torch.rand(2, 1, 6, 6).to(memory_format=torch.channels_last)).stride()
torch.nn.functional.max_pool2d(torch.rand(2, 1, 6, 6).to(memory_format=torch.channels_last), 2).stride()
torch.nn.functional.adaptive_avg_pool2d(torch.rand(2, 3, 6, 6).to(memory_format=torch.channels_last), 1).stride()
torch.nn.functional.adaptive_max_pool2d(torch.rand(2, 3, 6, 6).to(memory_format=torch.channels_last), 1).stride()
torch.nn.functional.adaptive_avg_pool3d(torch.rand(2, 3, 6, 6, 6).to(memory_format=torch.channels_last_3d), 1).stride()
torch.nn.functional.adaptive_avg_pool2d(torch.rand(2, 3, 6, 6), 1).stride()
torch.nn.functional.adaptive_avg_pool2d(torch.rand(3, 6, 6), 1).stride()
torch.nn.Conv2d(2, 2, 3, padding=(1, 2))._reversed_padding_repeated_twice
torch.nn.FractionalMaxPool2d(2, output_size=2, _random_samples=torch.rand(2, 1, 2))(torch.rand(2, 2, 6, 6))
torch.nn.FractionalMaxPool2d(2, output_size=2, _random_samples=torch.rand(2, 2, 1))(torch.rand(2, 2, 6, 6))
torch.nn.FractionalMaxPool2d(2, output_size=2, _random_samples=torch.rand(1, 2, 2))(torch.rand(2, 2, 6, 6))
torch.nn.FractionalMaxPool3d(0, output_size=2, _random_samples=torch.rand(2, 2, 3))(torch.rand(2, 2, 6, 6, 6))
torch.nn.FractionalMaxPool2d(2, output_size=2, _random_samples=torch.full((2, 2, 2), 0.3))(torch.arange(144.0).reshape(2, 2, 6, 6))
torch.nn.functional.embedding_bag(torch.tensor([[1, 2]]), torch.ones(4, 2), padding_idx=4)
torch.nn.functional.embedding_bag(torch.tensor([[1, 2]]), torch.ones(4, 2), padding_idx=-4)
torch.nn.functional.embedding(torch.tensor([[1, 2]]), torch.ones(4, 2), padding_idx=4)
torch.nn.utils.rnn.pad_sequence(iter([torch.ones(2), torch.ones(3)]))
torch.nn.utils.rnn.pad_sequence(x * torch.ones(2) for x in (1, 2))
torch.nn.utils.rnn.pad_sequence({1: 2})
torch.nn.utils.rnn.pad_sequence([torch.tensor(1.0)])
torch.nn.utils.rnn.pad_sequence(5)
(lambda p: (p.float() is p, p.double() is p, p.to("cpu") is p))(torch.nn.utils.rnn.pack_sequence([torch.ones(2)]))
torch.nn.GRU(1, 2).check_forward_args(torch.ones(2, 2, 1), torch.ones(1, 2, 2), None)
torch.nn.GRU(1, 2).check_forward_args(torch.ones(2, 2, 1), torch.ones(1, 1, 2), None)
torch.nn.LSTM(1, 2).check_forward_args(torch.ones(2, 2, 1), (torch.ones(1, 2, 2), torch.ones(1, 2, 2)), None)
torch.nn.MultiheadAttention(4, 2)(torch.ones(3, 2, 4), torch.ones(3, 1, 4), torch.ones(3, 1, 4))
torch.nn.MultiheadAttention(4, 2)(torch.ones(3, 1, 4), torch.ones(3, 2, 4), torch.ones(3, 2, 4))
torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(3, 4), dim=3)
torch.norm_except_dim(torch.ones(2, 3), 2, 5)
torch.norm_except_dim(torch.ones(2, 3), 2, -2)
torch._weight_norm(torch.ones(2, 3), torch.ones(2, 1), 0)
torch.native_dropout(torch.ones(3, dtype=torch.long), 0.5, True)
torch.native_dropout(torch.ones(3, dtype=torch.long), 0.5, False)
torch.nn.LazyLinear(3, device="meta")(torch.ones(1, 2, device="meta")).shape
torch.nn.LazyBatchNorm2d(device="meta")(torch.ones(3, 2, 2, 2, device="meta")).shape
torch.nn.parameter.UninitializedParameter().double().dtype
torch.nn.parameter.UninitializedParameter().to(torch.half).dtype
torch.nn.parameter.UninitializedParameter() + 1
(lambda m, f: (m.register_state_dict_post_hook(f), m._register_state_dict_hook(f)))(torch.nn.ReLU(), lambda *a: None)
(lambda m, f: len(m.state_dict()) if [m._register_state_dict_hook(f), m.register_state_dict_post_hook(f)] else 0)(torch.nn.ReLU(), lambda *a: None)
(lambda m: (m.register_full_backward_hook(lambda *a: 5), m(torch.ones(1, 2, requires_grad=True)).sum().backward()))(torch.nn.Linear(2, 2))
torch.optim.swa_utils.AveragedModel(torch.nn.Linear(1, 1)).update_parameters(torch.nn.Linear(2, 1))
torch.nn.utils.stateless._functional_call(torch.nn.Linear(1, 1), {"weight": torch.ones(1, 1), "bias": torch.zeros(1)}, torch.ones(1, 1))
torch.nn.utils.stateless._functional_call(torch.nn.Linear(1, 1), {"weight": torch.ones(1, 1)}, torch.ones(1, 1), strict=True)
torch._linalg_slogdet(torch.eye(2)).pivots
torch._linalg_solve_ex(torch.eye(2), torch.eye(2)).info
torch._linalg_svd(torch.eye(2)).S, torch._linalg_eigh(torch.eye(2)).eigenvalues, torch._linalg_det(torch.eye(2)).result
[type(r).__name__ for r in (torch._linalg_det(torch.eye(2)), torch._linalg_svd(torch.eye(2)), torch._linalg_eigh(torch.eye(2)))]
(lambda n: (n._maybe_min_seqlen, n._maybe_max_seqlen))(torch.nested.nested_tensor_from_jagged(torch.arange(5.0), torch.tensor([0, 2, 5]), min_seqlen=2, max_seqlen=3))
(lambda x, m: torch.cat([torch.masked.masked_tensor(x, m), torch.zeros(2)]))(torch.ones(2), torch.tensor([True, False]))
(lambda x, m: torch.stack([torch.masked.masked_tensor(x, m), torch.zeros(2)]))(torch.ones(2), torch.tensor([True, False]))
(lambda x, m: torch.hstack([torch.zeros(2), torch.masked.masked_tensor(x, m)]))(torch.ones(2), torch.tensor([True, False]))
(lambda a: torch.cat([a, a]).get_mask())(torch.masked.masked_tensor(torch.ones(2), torch.tensor([True, False])))
torch.broadcast_shapes((-1,), (2,))
torch.segment_reduce(torch.tensor(1.0), "sum", lengths=torch.tensor([1]))
torch.tensor([True, False]) ** -1
torch.tensor([True, False]) ** 2
""".strip().splitlines()  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_answer_is_pytorchs(program: str) -> None:
    assert answer(rushlight, program) == answer(reference, program)


def both() -> tuple[Any, Any]:
    return rushlight, reference


def test_a_sparse_gradient_that_a_graph_is_made_of_leaves_the_former_one_as_it_is() -> None:
    for library in both():
        x = library.tensor([1.5, 1.5], requires_grad=True)
        rows = library.sparse_coo_tensor(
            library.tensor([[1, 1]]), library.tensor([1.0, 1.0]), (2,), check_invariants=False
        )
        for former, new in ((rows.clone(), rows), (library.ones(2), rows)):
            x.grad = former
            before = former.to_dense().tolist()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of the cycle that such a gradient is
                x.backward(new, create_graph=True)
            assert x.grad is not former
            assert former.to_dense().tolist() == before


def test_a_saved_tensor_tells_what_a_hook_made_of_it_and_how_to_undo_it() -> None:
    for library in both():
        a = library.tensor(2.0, requires_grad=True)

        def pack(t: Any) -> tuple[str, Any]:
            return "packed", t.detach()

        def unpack(packed: tuple[str, Any]) -> Any:
            return packed[1]

        with library.autograd.graph.saved_tensors_hooks(pack, unpack):
            b = a**2
        c = b.exp()
        assert b.grad_fn._raw_saved_self.data[0] == "packed"
        assert b.grad_fn._raw_saved_self.unpack_hook is unpack
        assert c.grad_fn._raw_saved_result.unpack_hook is None
        assert c.grad_fn._raw_saved_result.data.item() == c.item()
        with pytest.raises(TypeError, match="incompatible function arguments"):
            c.grad_fn._raw_saved_result.register_hooks(abs)


def test_what_is_part_of_the_graph_is_not_deleted() -> None:
    for library in both():
        x = library.ones(2, requires_grad=True)
        assert (x * 2)._grad_fn is not None
        for name in ("_grad_fn", "_backward_hooks"):
            with pytest.raises(RuntimeError):
                delattr(x, name)
        with pytest.warns(UserWarning, match="volatile was removed"):
            assert x.volatile is False


def test_the_class_of_a_tensor_without_memory_can_be_changed() -> None:
    for library in both():

        class Own(library.Tensor):  # type: ignore[misc, name-defined]
            pass

        for x in (library.ones(2, device="meta"), library.ones(2, dtype=library.cfloat).conj()):
            x.__class__ = Own
            assert isinstance(x, Own)
        assert x.is_conj()


def test_settings_of_recording_answer_by_their_inner_names() -> None:
    from rushlight import _C as inner

    for library, names in ((rushlight, inner), (reference, reference._C)):
        with library.autograd._force_original_view_tracking(True):
            assert names._is_view_replay_enabled()
        assert not names._is_view_replay_enabled()
        with library.autograd.set_multithreading_enabled(False):
            assert not names._is_multithreading_enabled()
        assert names._is_multithreading_enabled()
        assert names._is_fwd_grad_enabled()
        x = library.ones(1)
        held = names._WeakTensorRef(x)
        assert not held.expired()
        del x
        assert held.expired()


def test_a_custom_function_has_the_places_of_its_tensors_in_the_graph() -> None:
    for library in both():

        class Scaled(library.autograd.Function):  # type: ignore[misc, name-defined]
            @staticmethod
            def forward(ctx: Any, n: int, x: Any, other: Any, nothing: None) -> Any:
                return x * n

            @staticmethod
            def backward(ctx: Any, g: Any) -> tuple[Any, ...]:
                assert len(ctx.next_functions) == 2
                return None, g * 3, None, None

        x = library.ones(2, requires_grad=True)
        y = Scaled.apply(3, x, library.ones(1), None)
        assert [fn is None for fn, _ in y.grad_fn.next_functions] == [False, True]
        assert y.grad_fn.next_functions[0][0].variable is x
        seen: list[tuple[Any, ...]] = []

        def doubled(
            inner: tuple[Any, ...], outer: tuple[Any, ...], seen: list[tuple[Any, ...]] = seen
        ) -> tuple[Any, ...]:
            seen.append(inner)
            return inner[0] * 2, None

        y.grad_fn.register_hook(doubled)
        y.sum().backward()
        assert [g is None for g in seen[0]] == [False, True]
        assert x.grad.tolist() == [6.0, 6.0]


def test_what_may_change_though_it_is_saved_is_counted() -> None:
    for library in both():
        a = library.ones(2, 3, requires_grad=True).clone()
        with library.autograd.graph.allow_mutation_on_saved_tensors() as state:
            total = (a**2).sum()
            assert len(list(state.tid_to_weakhandle.items())) == 1
            a.sin_()
            assert len(list(state.cloned.items())) == 1
            del total
            assert not list(state.cloned.items())
