"""Calls at the edge of what functions take: numbers for tensors, empty lists, empty tensors, integers beyond int64."""

import io

import pytest

import rushlight as torch


@pytest.mark.parametrize(("fn", "args", "want", "dtype"), [
    (torch.add, (1, 2), 3, torch.int64), (torch.mul, (2, 3.5), 7, torch.float32), (torch.sub, (1, 2), -1, torch.int64),
    (torch.div, (1, 2), 0.5, torch.float32), (torch.floor_divide, (5, 2), 2, torch.int64), (torch.add, (1j, 2), 2 + 1j, torch.complex64),
])  # fmt: skip
def test_two_numbers_give_a_tensor(fn, args, want, dtype):
    found = fn(*args)
    assert (found.shape, found.dtype, found.item()) == ((), dtype, want)


def test_a_product_with_a_stranger_is_left_to_the_stranger():
    class Stranger:
        def __rmatmul__(self, other):
            return "its own"

    assert torch.ones(2) @ Stranger() == "its own"
    with pytest.raises(TypeError, match="unsupported operand"):
        torch.ones(2) @ 3


def test_joining_empty_tensors():
    empty = torch.empty(0)
    assert torch.cat([empty, empty], dim=1).shape == (0,)
    leaf = torch.empty(0, requires_grad=True)
    whole = torch.cat([leaf, torch.ones(2, 2)], dim=1)
    whole.sum().backward()
    assert whole.requires_grad
    assert leaf.grad.shape == (0,)
    other = torch.ones(2, 1, requires_grad=True)
    torch.cat([other, leaf, torch.ones(2, 2)], dim=1).backward(torch.arange(6.0).reshape(2, 3))
    assert other.grad.tolist() == [[0], [3]]


def test_nothing_to_combine():
    assert torch.block_diag().shape == (1, 0)
    assert torch.combinations(torch.tensor([1, 2, 3]), r=0).shape == (0,)
    assert torch.combinations(torch.tensor([1, 2, 3]), r=4).shape == (0, 4)


@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn"])
def test_one_size_and_one_dimension_of_a_transform(name):
    fn, x = getattr(torch.fft, name), torch.ones(2, 4)
    assert torch.equal(fn(x, s=4, dim=-1), fn(x, s=(4,), dim=(-1,)))


def test_integers_beyond_int64_become_other_numbers():
    assert torch.tensor([2**64, 0.5], dtype=torch.float64).tolist() == [2.0**64, 0.5]
    assert torch.tensor((float("nan"), -(2**63) - 1), dtype=torch.bool).tolist() == [True, True]
    assert torch.tensor(2**70, dtype=torch.float32).item() == 2.0**70
    with pytest.raises(ValueError, match="Overflow"):
        torch.tensor([2**70])


def test_pooling_of_no_images():
    assert torch.nn.AdaptiveMaxPool2d(4)(torch.ones(0, 3, 5, 5)).shape == (0, 3, 4, 4)
    assert torch.nn.AdaptiveMaxPool1d(5)(torch.ones(0, 3, 10)).shape == (0, 3, 5)


def test_random_numbers_without_dimensions():
    assert torch.poisson(torch.tensor(1.0)).shape == ()
    assert torch.binomial(torch.tensor(3.0), torch.tensor(0.5)).shape == ()
    assert torch.distributions.Poisson(torch.tensor(1.0)).sample().shape == ()


def test_a_logit_whose_bounds_cross():
    x = torch.tensor([0.5, 0.1, 0.9])
    assert torch.logit(x, 0.7).tolist() == pytest.approx([0.8473, 0.8473, -0.8473], abs=1e-4)


def test_repeated_positions_have_the_dtype_of_the_counts():
    assert torch.repeat_interleave(torch.tensor([1, 2], dtype=torch.int32)).dtype == torch.int32


@pytest.mark.parametrize("fn", [torch.atleast_1d, torch.atleast_2d, torch.conj_physical])
def test_nothing_to_do_gives_the_tensor_itself(fn):
    x = torch.ones(2, 3, requires_grad=True)
    assert fn(x) is x
    assert torch.broadcast_tensors(x)[0] is x
    assert not x.detach().conj_physical_()._is_view()


def test_differences_of_order_zero_leave_out_what_would_be_put_at_the_ends():
    x = torch.ones(1, 5)
    assert torch.diff(x, 0, 0, x).shape == (1, 5)


def test_out_of_functions_that_take_it():
    x, out = torch.ones(1, 1, 2, 2), torch.zeros(1, 1, 2, 2)
    assert torch.nn.functional.avg_pool2d(3 * x, 1, out=out) is out
    assert out.sum() == 12
    torch.nn.functional.softshrink(x, out=out)
    assert out.sum() == 2
    assert torch.nn.functional.linear(torch.ones(2, 3), torch.ones(4, 3), out=torch.zeros(2, 4)).sum() == 24


def test_the_smooth_loss_of_complex_numbers_without_a_smooth_part():
    x = torch.tensor([3 + 4j, 0j])
    assert torch.nn.functional.smooth_l1_loss(x, torch.zeros_like(x), beta=0) == 2.5


def test_a_bag_of_embeddings_given_in_the_order_of_long_ago():
    weight, indices = torch.arange(6.0).view(3, 2), torch.tensor([[0, 2]])
    with pytest.warns(UserWarning, match=r"expected \(input, weight\)"):
        found = torch.nn.functional.embedding_bag(weight, indices)
    assert found.tolist() == [[2, 3]]


def test_the_exponential_of_matrices_of_16_bits():
    found = torch.matrix_exp(torch.zeros(2, 2, dtype=torch.bfloat16))
    assert (found.dtype, found.tolist()) == (torch.bfloat16, [[1, 0], [0, 1]])


def test_the_indices_of_what_is_not_zero_are_vectors_of_their_own():
    rows, columns = torch.nonzero(torch.ones(2, 2), as_tuple=True)
    assert rows.is_contiguous() and rows.untyped_storage().nbytes() == 32
    assert columns.tolist() == [0, 1, 0, 1]


def test_no_reflections_give_a_copy():
    x = torch.ones(5, 2)
    assert torch.ormqr(torch.zeros(5, 0), torch.zeros(0), x).data_ptr() != x.data_ptr()


def test_a_histogram_of_numbers_too_large_for_bins_beside_them():
    assert torch.histc(torch.tensor([1e30, 1e30], dtype=torch.float64), 4).tolist() == [0, 0, 2, 0]


def test_histograms_have_no_gradient():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    assert not torch.histc(x).requires_grad
    counts, edges = torch.histogram(x, 2)
    assert counts.requires_grad
    with pytest.raises(NotImplementedError, match="histogram"):
        edges.sum().backward()


def test_elements_that_share_memory_are_filled():
    x = torch.empty_strided((4, 3, 2), (10, 0, 3)).fill_(1.0)
    assert x.stride() == (10, 0, 3)
    assert x.sum().item() == 24
    assert torch.ones(1, 3).expand(2, 3).zero_().sum().item() == 0
    with pytest.raises(RuntimeError, match="single memory location"):
        x.add_(1)


def test_pooling_of_nothing_and_to_nothing():
    functional = torch.nn.functional
    assert torch.nn.AdaptiveAvgPool1d(5)(torch.ones(0, 10)).shape == (0, 5)
    assert torch.nn.AdaptiveAvgPool2d(5)(torch.ones(2, 0, 8, 8)).shape == (2, 0, 5, 5)
    assert functional.adaptive_max_pool1d(torch.ones(0, 10), 5).shape == (0, 5)
    for shape in ((2, 0, 8), (2, 3, 0)):
        with pytest.raises(RuntimeError, match="non-zero size"):
            functional.adaptive_max_pool1d(torch.ones(shape), 5)
    with pytest.raises(RuntimeError, match="non-zero size"):
        functional.adaptive_avg_pool1d(torch.ones(2, 3, 0), 5)
    x = torch.ones(1, 2, 5, 5, requires_grad=True)
    found, at = functional.fractional_max_pool2d(x, 2, output_size=(0, 1), return_indices=True)
    assert found.shape == at.shape == (1, 2, 0, 1)
    found.sum().backward()
    assert x.grad.abs().sum().item() == 0
    assert torch.nn.FractionalMaxPool3d(2, output_size=(0, 1, 1))(torch.ones(1, 2, 5, 5, 5)).shape == (1, 2, 0, 1, 1)


def test_sizes_are_added_to_tuples_alone():
    size, two, listed = torch.Size([1]), (2,), [2]
    for found in (size + two, size + torch.Size([2])):
        assert found == (1, 2)
        assert isinstance(found, torch.Size)
    assert isinstance(two + size, torch.Size)
    assert two + size == (2, 1)
    assert isinstance(2 * size, torch.Size)
    with pytest.raises(TypeError, match=r"can only concatenate tuple \(not list\) to torch\.Size"):
        size + listed

    class Other:
        def __radd__(self, other):
            return "other"

    assert size + Other() == "other"


def test_files_that_do_not_say_that_they_can_be_sought_in():
    class Written:
        def __init__(self):
            self.file = io.BytesIO()
            self.write, self.flush = self.file.write, self.file.flush

    class Read:
        def __init__(self, data):
            file = io.BytesIO(data)
            self.read, self.readline, self.seek, self.tell = file.read, file.readline, file.seek, file.tell

    file = Written()
    torch.save(torch.ones(2), file)
    assert torch.load(Read(file.file.getvalue())).tolist() == [1, 1]


def test_a_number_is_a_shape():
    parameter = torch.nn.UninitializedParameter()
    parameter.materialize(3)
    assert parameter.shape == (3,)


def test_a_buffer_in_a_module_whose_register_buffer_takes_two_arguments():
    class Two(torch.nn.Module):
        def register_buffer(self, name, value):
            super().register_buffer(name, value)

    module = Two()
    module.a = torch.nn.Buffer(torch.ones(1))
    assert list(dict(module.named_buffers())) == ["a"]
    with pytest.raises(TypeError):
        module.b = torch.nn.Buffer(torch.ones(1), persistent=False)


def test_small_forms():
    generator = torch.Generator()
    assert generator.set_state(generator.get_state()) is generator
    untyped, typed = torch.ones(2).untyped_storage(), torch.ones(2).storage()
    assert not untyped.is_shared()
    assert untyped.type() == "torch.storage.UntypedStorage"
    assert typed._untyped_storage.nbytes() == 8
    with pytest.warns(UserWarning, match="is an empty generator"):
        assert torch.nn.utils.clip_grad_norm_((p for p in []), 1.0) == 0


def test_numbers_are_scaled_as_tensors_are():
    assert (torch.add(1, 2, alpha=3).item(), torch.sub(1, 2, alpha=3).item(), torch.add(1.0, 2, alpha=2).item()) == (
        7,
        -5,
        5.0,
    )


def test_what_overrides_functions_may_be_a_buffer():
    class Like:
        def __torch_function__(self, *args, **kwargs):
            return None

    module = torch.nn.Module()
    module.register_buffer("a", Like())
    assert type(module.a) is Like


def test_types_of_results_know_their_number_of_fields():
    kind = torch.return_types.max
    assert (kind.n_fields, kind.n_sequence_fields, kind.n_unnamed_fields) == (2, 2, 0)
