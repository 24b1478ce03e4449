"""Residual networks for images, with the parameter names of ``torchvision.models``.

He, Zhang, Ren, Sun: "Deep Residual Learning for Image Recognition", arXiv:1512.03385.  As in torchvision
the stride of a bottleneck block sits in its 3x3 convolution ("ResNet v1.5").
"""

from collections.abc import Callable, Sequence
from typing import Any

from rushlight import nn
from rushlight.models.weights import Weights, WeightsEnum, build, register_model
from rushlight.tensor import Tensor

__all__ = [
    "BasicBlock",
    "Bottleneck",
    "ResNet",
    "ResNet18_Weights",
    "ResNet34_Weights",
    "ResNet50_Weights",
    "ResNet101_Weights",
    "ResNet152_Weights",
    "resnet18",
    "resnet34",
    "resnet50",
    "resnet101",
    "resnet152",
]

NormLayer = Callable[[int], nn.Module]


def conv3x3(inputs: int, outputs: int, stride: int = 1, groups: int = 1, dilation: int = 1) -> nn.Conv2d:
    """A 3x3 convolution without bias that keeps the image's size at stride 1."""
    return nn.Conv2d(inputs, outputs, 3, stride, padding=dilation, dilation=dilation, groups=groups, bias=False)


def conv1x1(inputs: int, outputs: int, stride: int = 1) -> nn.Conv2d:
    """A 1x1 convolution without bias."""
    return nn.Conv2d(inputs, outputs, 1, stride, bias=False)


class BasicBlock(nn.Module):
    """Two 3x3 convolutions and a shortcut: (N, inplanes, H, W) -> (N, planes, H/stride, W/stride)."""

    expansion: int = 1

    def __init__(
        self,
        inplanes: int,
        planes: int,
        stride: int = 1,
        downsample: nn.Module | None = None,
        groups: int = 1,
        base_width: int = 64,
        dilation: int = 1,
        norm_layer: NormLayer | None = None,
    ) -> None:
        super().__init__()
        if groups != 1 or base_width != 64 or dilation != 1:
            raise ValueError(
                "BasicBlock knows only groups=1, base_width=64 and dilation=1, but got "
                f"groups={groups}, base_width={base_width}, dilation={dilation}: use Bottleneck"
            )
        norm = norm_layer or nn.BatchNorm2d
        self.conv1 = conv3x3(inplanes, planes, stride)
        self.bn1 = norm(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = conv3x3(planes, planes)
        self.bn2 = norm(planes)
        self.downsample = downsample
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        """Applies the block."""
        out: Any = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += x if self.downsample is None else self.downsample(x)
        return self.relu(out)


class Bottleneck(nn.Module):
    """1x1, 3x3 and 1x1 convolutions and a shortcut: (N, inplanes, H, W) -> (N, 4 planes, H/stride, W/stride)."""

    expansion: int = 4

    def __init__(
        self,
        inplanes: int,
        planes: int,
        stride: int = 1,
        downsample: nn.Module | None = None,
        groups: int = 1,
        base_width: int = 64,
        dilation: int = 1,
        norm_layer: NormLayer | None = None,
    ) -> None:
        super().__init__()
        norm = norm_layer or nn.BatchNorm2d
        width = int(planes * (base_width / 64.0)) * groups
        self.conv1 = conv1x1(inplanes, width)
        self.bn1 = norm(width)
        self.conv2 = conv3x3(width, width, stride, groups, dilation)
        self.bn2 = norm(width)
        self.conv3 = conv1x1(width, planes * self.expansion)
        self.bn3 = norm(planes * self.expansion)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = downsample
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        """Applies the block."""
        out: Any = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        out += x if self.downsample is None else self.downsample(x)
        return self.relu(out)


class ResNet(nn.Module):
    """A residual network: images (N, 3, H, W) -> logits (N, num_classes).

    ``layers`` gives the number of blocks in each of the four stages.
    """

    def __init__(
        self,
        block: type[BasicBlock] | type[Bottleneck],
        layers: Sequence[int],
        num_classes: int = 1000,
        zero_init_residual: bool = False,
        groups: int = 1,
        width_per_group: int = 64,
        replace_stride_with_dilation: Sequence[bool] | None = None,
        norm_layer: NormLayer | None = None,
    ) -> None:
        super().__init__()
        dilate = (False, False, False) if replace_stride_with_dilation is None else replace_stride_with_dilation
        if len(dilate) != 3:
            raise ValueError(
                "ResNet: replace_stride_with_dilation must be None or three booleans, one for each of the "
                f"last three stages, but got {replace_stride_with_dilation!r}"
            )
        self._norm_layer: NormLayer = norm_layer or nn.BatchNorm2d
        self.inplanes = 64
        self.dilation = 1
        self.groups = groups
        self.base_width = width_per_group
        self.conv1 = nn.Conv2d(3, 64, kernel_size=7, stride=2, padding=3, bias=False)
        self.bn1 = self._norm_layer(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
        self.layer1 = self._make_layer(block, 64, layers[0])
        self.layer2 = self._make_layer(block, 128, layers[1], stride=2, dilate=dilate[0])
        self.layer3 = self._make_layer(block, 256, layers[2], stride=2, dilate=dilate[1])
        self.layer4 = self._make_layer(block, 512, layers[3], stride=2, dilate=dilate[2])
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(512 * block.expansion, num_classes)
        self._initialise(zero_init_residual)

    def _initialise(self, zero_init_residual: bool) -> None:
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(module, nn.BatchNorm2d | nn.GroupNorm):
                nn.init.constant_(module.weight, 1)
                nn.init.constant_(module.bias, 0)
        if zero_init_residual:  # every block starts as the identity (arXiv:1706.02677, section 5.1)
            for module in self.modules():
                if isinstance(module, Bottleneck):
                    nn.init.constant_(module.bn3.weight, 0)
                elif isinstance(module, BasicBlock):
                    nn.init.constant_(module.bn2.weight, 0)

    def _make_layer(
        self,
        block: type[BasicBlock] | type[Bottleneck],
        planes: int,
        blocks: int,
        stride: int = 1,
        dilate: bool = False,
    ) -> nn.Sequential:
        norm, before = self._norm_layer, self.dilation
        if dilate:
            self.dilation *= stride
            stride = 1
        outputs = planes * block.expansion
        downsample = None
        if stride != 1 or self.inplanes != outputs:
            downsample = nn.Sequential(conv1x1(self.inplanes, outputs, stride), norm(outputs))
        stage = [block(self.inplanes, planes, stride, downsample, self.groups, self.base_width, before, norm)]
        self.inplanes = outputs
        stage += [
            block(outputs, planes, 1, None, self.groups, self.base_width, self.dilation, norm) for _ in range(1, blocks)
        ]
        return nn.Sequential(*stage)

    def forward(self, x: Tensor) -> Tensor:
        """Logits (N, num_classes) of images ``x`` (N, 3, H, W)."""
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        x = self.fc(self.avgpool(x).flatten(1))
        return x


class ResNet18_Weights(WeightsEnum):
    """Weight files of `resnet18`."""

    IMAGENET1K_V1 = Weights("resnet18-f37072fd.pth", num_params=11689512)
    DEFAULT = IMAGENET1K_V1


class ResNet34_Weights(WeightsEnum):
    """Weight files of `resnet34`."""

    IMAGENET1K_V1 = Weights("resnet34-b627a593.pth", num_params=21797672)
    DEFAULT = IMAGENET1K_V1


class ResNet50_Weights(WeightsEnum):
    """Weight files of `resnet50`."""

    IMAGENET1K_V1 = Weights("resnet50-0676ba61.pth", num_params=25557032)
    IMAGENET1K_V2 = Weights("resnet50-11ad3fa6.pth", num_params=25557032)
    DEFAULT = IMAGENET1K_V2


class ResNet101_Weights(WeightsEnum):
    """Weight files of `resnet101`."""

    IMAGENET1K_V1 = Weights("resnet101-63fe2227.pth", num_params=44549160)
    IMAGENET1K_V2 = Weights("resnet101-cd907fc2.pth", num_params=44549160)
    DEFAULT = IMAGENET1K_V2


class ResNet152_Weights(WeightsEnum):
    """Weight files of `resnet152`."""

    IMAGENET1K_V1 = Weights("resnet152-394f9c45.pth", num_params=60192808)
    IMAGENET1K_V2 = Weights("resnet152-f82ba261.pth", num_params=60192808)
    DEFAULT = IMAGENET1K_V2


def _resnet(
    block: type[BasicBlock] | type[Bottleneck],
    layers: Sequence[int],
    weights: WeightsEnum | None,
    options: dict[str, Any],
) -> ResNet:
    return build(lambda **kwargs: ResNet(block, layers, **kwargs), weights, options)


@register_model(ResNet18_Weights)
def resnet18(*, weights: Any = None, progress: bool = True, **kwargs: Any) -> ResNet:
    """ResNet-18; ``kwargs`` go to `ResNet`.  ``weights``: a `ResNet18_Weights`, its name, or None."""
    return _resnet(BasicBlock, (2, 2, 2, 2), weights, kwargs)


@register_model(ResNet34_Weights)
def resnet34(*, weights: Any = None, progress: bool = True, **kwargs: Any) -> ResNet:
    """ResNet-34; ``kwargs`` go to `ResNet`.  ``weights``: a `ResNet34_Weights`, its name, or None."""
    return _resnet(BasicBlock, (3, 4, 6, 3), weights, kwargs)


@register_model(ResNet50_Weights)
def resnet50(*, weights: Any = None, progress: bool = True, **kwargs: Any) -> ResNet:
    """ResNet-50; ``kwargs`` go to `ResNet`.  ``weights``: a `ResNet50_Weights`, its name, or None."""
    return _resnet(Bottleneck, (3, 4, 6, 3), weights, kwargs)


@register_model(ResNet101_Weights)
def resnet101(*, weights: Any = None, progress: bool = True, **kwargs: Any) -> ResNet:
    """ResNet-101; ``kwargs`` go to `ResNet`.  ``weights``: a `ResNet101_Weights`, its name, or None."""
    return _resnet(Bottleneck, (3, 4, 23, 3), weights, kwargs)


@register_model(ResNet152_Weights)
def resnet152(*, weights: Any = None, progress: bool = True, **kwargs: Any) -> ResNet:
    """ResNet-152; ``kwargs`` go to `ResNet`.  ``weights``: a `ResNet152_Weights`, its name, or None."""
    return _resnet(Bottleneck, (3, 8, 36, 3), weights, kwargs)
