"""``torch.nested``: tensors of rows of several lengths, which rushlight does not have."""

from rushlight import absent

absent.names(
    globals(),
    "rushlight has no nested tensors: pad the rows with torch.nn.utils.rnn.pad_sequence and give the lengths or a mask",
    "", "as_nested_tensor masked_select narrow nested_tensor nested_tensor_from_jagged to_padded_tensor",
)  # fmt: skip
