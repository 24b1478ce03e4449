"""In which order hooks see a gradient, and what each is given."""

import pytest

import rushlight as torch
from rushlight.autograd.graph import get_gradient_edge


class Log(list):
    """Hooks that note what they are given and multiply it."""

    def tensor(self, name, factor=1):
        return lambda g: (self.append((name, g.tolist())), g * factor)[1]

    def pre(self, name, factor=1):
        return lambda gs: (self.append((name, gs[0].tolist())), (gs[0] * factor,))[1]

    def post(self, name):
        return lambda inputs, outputs: self.append((name, [g.tolist() for g in outputs]))


def test_grad_of_an_intermediate_is_taken_after_its_tensor_hooks_and_before_prehooks():
    log = Log()
    x = torch.ones(1, requires_grad=True)
    b = x * 2
    b.register_hook(log.tensor("first", 10))
    b.retain_grad()
    b.register_hook(log.tensor("second", 10))
    b.grad_fn.register_prehook(log.pre("pre", 100))
    b.grad_fn.register_hook(log.post("post"))
    (g,) = torch.autograd.grad((b * 3).sum(), b)
    assert g.tolist() == b.grad.tolist() == [300.0]
    assert log == [("first", [3.0]), ("second", [30.0])]


def test_grad_of_an_intermediate_on_the_way_to_another_input_is_taken_before_its_hooks():
    log = Log()
    x = torch.ones(1, requires_grad=True)
    b = x * 2
    b.register_hook(log.tensor("tensor", 10))
    b.grad_fn.register_prehook(log.pre("pre", 100))
    b.grad_fn.register_hook(log.post("post"))
    gb, gx = torch.autograd.grad((b * 3).sum(), [b, x])
    assert (gb.item(), gx.item()) == (3.0, 6000.0)
    assert log == [("tensor", [3.0]), ("pre", [30.0]), ("post", [[3000.0]])]


def test_backward_into_an_intermediate_keeps_the_gradient_after_tensor_hooks_and_runs_all_hooks_of_the_node():
    log = Log()
    x = torch.ones(1, requires_grad=True)
    b = x * 2
    b.register_hook(log.tensor("tensor", 10))
    b.grad_fn.register_prehook(log.pre("pre", 100))
    b.grad_fn.register_hook(log.post("post"))
    torch.autograd.backward((b * 3).sum(), inputs=[b])
    assert b.grad.tolist() == [30.0] and x.grad is None
    assert log == [("tensor", [3.0]), ("pre", [30.0]), ("post", [[3000.0]])]


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.filterwarnings("ignore:Using backward.. with create_graph=True")
def test_a_leaf_runs_tensor_hooks_then_prehooks_then_accumulates_whatever_was_registered_first(create_graph):
    log = Log()
    x = torch.ones(1, requires_grad=True)
    accumulate = get_gradient_edge(x).node
    accumulate.register_prehook(log.pre("pre", 100))
    x.register_hook(log.tensor("tensor", 10))
    accumulate.register_hook(log.post("post"))
    x.register_post_accumulate_grad_hook(lambda p: log.append(("accumulated", p.grad.tolist())))
    once = [("tensor", [2.0]), ("pre", [20.0]), ("accumulated", [2000.0]), ("post", [[2000.0]])]
    (x * 2).sum().backward(create_graph=create_graph)
    assert log == once
    log.clear()
    (x * 2).sum().backward(create_graph=create_graph)
    assert log == [*once[:2], ("accumulated", [4000.0]), once[3]]


def test_grad_of_a_leaf_is_taken_before_the_prehooks_of_its_accumulation():
    log = Log()
    x = torch.ones(1, requires_grad=True)
    get_gradient_edge(x).node.register_prehook(log.pre("pre", 100))
    x.register_hook(log.tensor("tensor", 10))
    assert torch.autograd.grad((x * 2).sum(), x)[0].tolist() == [20.0]
    assert log == [("tensor", [2.0])] and x.grad is None


def test_a_prehook_of_accumulation_may_drop_the_gradient():
    seen = []
    x = torch.ones(1, requires_grad=True)
    accumulate = get_gradient_edge(x).node
    accumulate.register_prehook(lambda gs: (None,))
    accumulate.register_hook(lambda inputs, outputs: seen.append(outputs))
    (x * 2).sum().backward()
    assert x.grad is None and seen == [(None,)]


def test_what_hooks_of_accumulation_return_is_checked():
    x = torch.ones(1, requires_grad=True)
    accumulate = get_gradient_edge(x).node
    with accumulate.register_prehook(lambda gs: gs[0] * 2), pytest.raises(TypeError, match="expected tuple"):
        (x * 2).sum().backward()
    with (
        accumulate.register_hook(lambda inputs, outputs: (torch.ones(1),)),
        pytest.raises(RuntimeError, match=r"incorrect number of values \(got 1, but expected 0\)"),
    ):
        (x * 2).sum().backward()


def test_hooks_of_accumulation_live_as_long_as_the_leaf_and_can_be_removed():
    log = Log()
    x = torch.ones(1, requires_grad=True)
    handle = get_gradient_edge(x).node.register_prehook(log.pre("pre", 10))
    (x * 2).sum().backward()
    assert x.grad.tolist() == [20.0]
    handle.remove()
    (x * 2).sum().backward()
    assert x.grad.tolist() == [22.0] and len(log) == 1


def test_a_post_hook_of_accumulation_cannot_reach_the_memory_of_the_gradient_it_did_not_make():
    x = torch.ones(1, requires_grad=True)
    kept = []
    get_gradient_edge(x).node.register_hook(lambda inputs, outputs: kept.append(outputs[0]))
    (x * 2).sum().backward()
    x.grad.zero_()
    assert kept[0].tolist() == [2.0]
