"""Modules print, and name their state, as PyTorch's."""

from typing import Any

import pytest

import rushlight

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")]

MADE = [
    "Identity(3)", "Linear(2, 3)", "Linear(2, 3, bias=False)", "Bilinear(2, 3, 4)", "Flatten()",
    "Unflatten(1, (2, 3))", "Threshold(1, 2)", "Threshold(0.1, 20.0, True)", "ReLU()", "ReLU(True)", "RReLU()",
    "Hardtanh()", "ReLU6(True)", "Sigmoid()", "Hardsigmoid(True)", "Tanh()", "SiLU(True)", "Mish()", "Hardswish()",
    "ELU(2.0)", "CELU(1.0, True)", "SELU(True)", "GLU()", "GELU()", "GELU('tanh')", "Hardshrink()", "Softshrink(1)",
    "LeakyReLU(0.1, True)", "LogSigmoid()", "Softplus()", "PReLU(3)", "Softsign()", "Tanhshrink()", "Softmin(1)",
    "Softmax()", "Softmax2d()", "LogSoftmax(-1)", "MultiheadAttention(4, 2)",
    "MultiheadAttention(4, 2, add_bias_kv=True, kdim=3, vdim=5, bias=False)", "Conv1d(2, 4, 3)",
    "Conv1d(2, 4, 3, padding='same', padding_mode='circular', groups=2, bias=False)",
    "Conv2d(2, 4, (1, 3), stride=2, padding=(0, 1), dilation=2)", "Conv3d(2, 4, 3, bias=False)",
    "ConvTranspose1d(2, 4, 3)", "ConvTranspose2d(2, 4, 3, output_padding=1, stride=2, groups=2)",
    "ConvTranspose3d(2, 4, 3, dilation=2)", "BatchNorm1d(3)", "BatchNorm2d(3, affine=False)",
    "BatchNorm2d(3, bias=False)", "BatchNorm3d(3, momentum=None, track_running_stats=False)", "SyncBatchNorm(3)",
    "InstanceNorm1d(3)", "InstanceNorm2d(3, affine=True, track_running_stats=True)", "InstanceNorm3d(3)",
    "LayerNorm(3)", "LayerNorm((2, 3), bias=False)", "LayerNorm(3, elementwise_affine=False)", "GroupNorm(2, 4)",
    "GroupNorm(2, 4, bias=False)", "RMSNorm(4)", "RMSNorm([2, 3], eps=1e-6)", "LocalResponseNorm(2)",
    "CrossMapLRN2d(3)", "Embedding(3, 4)", "Embedding(3, 4, padding_idx=-1, max_norm=1.0, norm_type=1.0)",
    "Embedding(3, 4, scale_grad_by_freq=True, sparse=True)", "EmbeddingBag(3, 4)",
    "EmbeddingBag(3, 4, padding_idx=1, mode='sum', max_norm=2.0)", "Dropout()", "Dropout1d(0.1)",
    "Dropout2d(0.1, True)", "Dropout3d()", "AlphaDropout()", "FeatureAlphaDropout()", "MaxPool1d(2)",
    "MaxPool2d(2, ceil_mode=True)",
    "MaxPool3d((2, 3, 4), stride=1)", "MaxUnpool1d(2)", "MaxUnpool2d(2, 1)", "MaxUnpool3d(2)", "AvgPool1d(2)",
    "AvgPool2d(2)", "AvgPool3d((1, 2, 3), padding=1)", "FractionalMaxPool2d(2, 3)", "FractionalMaxPool3d(2, 3)",
    "LPPool1d(2, 3)", "LPPool2d(2, 3, stride=2)", "LPPool3d(2, 3, ceil_mode=True)", "AdaptiveMaxPool1d(2)",
    "AdaptiveMaxPool2d((2, None))", "AdaptiveMaxPool3d(2)", "AdaptiveAvgPool1d(2)", "AdaptiveAvgPool2d((1, 1))",
    "AdaptiveAvgPool3d(2)", "ConstantPad1d(1, 2.0)", "ConstantPad2d((1, 2, 3, 4), 2.0)", "ConstantPad3d(1, 2)",
    "ZeroPad1d(1)", "ZeroPad2d(1)", "ZeroPad3d(1)", "ReflectionPad1d(1)", "ReflectionPad2d(1)", "ReflectionPad3d(1)",
    "ReplicationPad1d((1, 2))", "ReplicationPad2d(1)", "ReplicationPad3d(1)", "CircularPad1d(1)", "CircularPad2d(1)",
    "CircularPad3d(1)", "PixelShuffle(2)", "PixelUnshuffle(2)", "ChannelShuffle(2)", "Upsample(size=3)",
    "Upsample(scale_factor=(2, 3), mode='bilinear')", "UpsamplingNearest2d(scale_factor=2)",
    "UpsamplingBilinear2d(size=(3, 4))", "Fold((4, 5), (2, 2))", "Unfold(2, padding=1)", "CosineSimilarity()",
    "PairwiseDistance()", "L1Loss()", "NLLLoss()", "PoissonNLLLoss()", "GaussianNLLLoss()", "KLDivLoss()", "MSELoss()",
    "BCELoss()", "BCEWithLogitsLoss()", "HingeEmbeddingLoss()", "MultiLabelMarginLoss()", "SmoothL1Loss()",
    "HuberLoss()", "SoftMarginLoss()", "CrossEntropyLoss()", "MultiLabelSoftMarginLoss()", "CosineEmbeddingLoss()",
    "MarginRankingLoss()", "MultiMarginLoss()", "TripletMarginLoss()", "TripletMarginWithDistanceLoss()", "CTCLoss()",
    "LinearCrossEntropyLoss(3, 5, out_features=(2,), bias=True)", "AdaptiveLogSoftmaxWithLoss(16, 10, [3, 5])",
    "RNN(2, 3)", "RNN(2, 3, 2, 'relu', bias=False, bidirectional=True)", "GRU(2, 3, 2, batch_first=True)",
    "LSTM(2, 3, 2, dropout=0.1, bidirectional=True, proj_size=1)", "RNNCell(2, 3, nonlinearity='relu')",
    "LSTMCell(2, 3)", "GRUCell(2, 3, bias=False)", "TransformerEncoderLayer(4, 2)", "TransformerDecoderLayer(4, 2, 8)",
    "Transformer(4, 2, 2, 1, 8)", "Transformer(4, 2, 1, 1, 8, bias=False, batch_first=True)", "LazyLinear(3)",
    "LazyConv1d(3, 2)", "LazyConv2d(3, 2, padding='same')", "LazyConv3d(3, 2, bias=False)", "LazyConvTranspose1d(3, 2)",
    "LazyConvTranspose2d(3, 2, stride=2)", "LazyConvTranspose3d(3, 2)", "LazyBatchNorm1d()", "LazyBatchNorm2d()",
    "LazyBatchNorm3d(affine=False)", "LazyInstanceNorm1d()", "LazyInstanceNorm2d()", "LazyInstanceNorm3d()",
    "Sequential()", "Sequential(nn.Linear(2, 3), nn.Sequential(nn.ReLU(), nn.Tanh()))", "ModuleList()",
    "ModuleList([nn.Linear(2, 2), nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2)])", "ModuleDict()",
    "ModuleDict({'a': nn.ReLU(), 'b': nn.ModuleList([nn.ReLU()])})", "ParameterList([torch.ones(2), 3, 'a'])",
    "ParameterList([torch.ones(2, 3), nn.Parameter(torch.ones(()))])", "ParameterList()", "ParameterDict()",
    "ParameterDict({'a': torch.ones(2), 'c': 4})", "Module()", "Parameter(torch.ones(2, 3))",
    "Parameter(torch.ones(2), requires_grad=False)", "Buffer(torch.ones(2))", "UninitializedParameter()",
    "UninitializedBuffer()",
]  # fmt: skip


def make(library: Any, text: str) -> Any:
    return eval(f"nn.{text}", {"nn": library.nn, "torch": library})


@pytest.mark.filterwarnings("ignore::UserWarning:torch")
@pytest.mark.parametrize("text", MADE)
def test_repr(text: str) -> None:
    assert repr(make(rushlight, text)) == repr(make(torch, text))


def described(module: Any) -> Any:
    lazy = any("Uninitialized" in type(v).__name__ for v in module.state_dict().values())
    return {
        "state": [(k, () if lazy else tuple(v.shape), str(v.dtype)) for k, v in module.state_dict().items()],
        "metadata": dict(module.state_dict()._metadata),
        "parameters": [(k, p.requires_grad) for k, p in module.named_parameters()],
        "buffers": [k for k, _ in module.named_buffers()],
        "modules": [k for k, _ in module.named_modules()],
    }


@pytest.mark.filterwarnings("ignore::UserWarning:torch")
@pytest.mark.parametrize("text", [t for t in MADE if "Param" not in t and "Buffer" not in t])
def test_state(text: str) -> None:
    assert described(make(rushlight, text)) == described(make(torch, text))


def test_nothing_is_missing() -> None:
    """Every class of torch.nn is here but those for other kinds of tensors."""
    classes = {n for n, v in vars(torch.nn).items() if isinstance(v, type)}
    assert not {n for n in classes if not hasattr(rushlight.nn, n)}
