"""Images, sound, volumes."""

from typing import Any

from workloads.registry import Step, classifying, equal, integers, normal, shipped, training, workload


def adam(torch: Any) -> Any:
    return lambda model: torch.optim.Adam(model.parameters(), lr=1e-4)


def resnet(torch: Any, block: str, layers: tuple[int, ...], n: int, size: int) -> Step:
    models = shipped(torch, "resnet")
    model = models.ResNet(getattr(models, block), layers, num_classes=100)
    return classifying(torch, model, normal(torch, n, 3, size, size), 100)


@workload()
def resnet18(torch: Any) -> Step:
    """ResNet-18, 8 x 64 px"""
    return resnet(torch, "BasicBlock", (2, 2, 2, 2), 8, 64)


@workload(same=4e-2)  # PyTorch on one thread and on two: 2e-2
def resnet50(torch: Any) -> Step:
    """ResNet-50, 4 x 112 px"""
    return resnet(torch, "Bottleneck", (3, 4, 6, 3), 4, 112)


@workload(same=1.1e-1)  # PyTorch on one thread and on two: 5e-2
def resnet152(torch: Any) -> Step:
    """ResNet-152, 2 x 96 px"""
    return resnet(torch, "Bottleneck", (3, 8, 36, 3), 2, 96)


@workload(same=None)
def resnet18_inference(torch: Any) -> Step:
    """ResNet-18 in eval mode, one image of 224 px"""
    models = shipped(torch, "resnet")
    model = equal(models.ResNet(models.BasicBlock, (2, 2, 2, 2), num_classes=100)).eval()
    x = normal(torch, 1, 3, 224, 224)
    return torch.no_grad()(lambda: model(x).sum())


@workload()
def vit(torch: Any) -> Step:
    """ViT-B/16, 2 x 224 px, Adam"""
    model = shipped(torch, "vision_transformer").VisionTransformer(
        224, patch_size=16, num_layers=12, num_heads=12, hidden_dim=768, mlp_dim=3072, num_classes=100
    )
    return classifying(torch, model, normal(torch, 2, 3, 224, 224), 100, adam(torch))


@workload()
def vit_small(torch: Any) -> Step:
    """ViT of width 192, 6 layers, 32 x 32 px, Adam"""
    model = shipped(torch, "vision_transformer").VisionTransformer(
        32, patch_size=4, num_layers=6, num_heads=3, hidden_dim=192, mlp_dim=768, num_classes=10
    )
    return classifying(torch, model, normal(torch, 32, 3, 32, 32), 10, adam(torch))


@workload()
def lenet(torch: Any) -> Step:
    """LeNet, 64 x 28 px"""
    nn = torch.nn
    model = nn.Sequential(nn.Conv2d(1, 32, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 5), nn.ReLU(), nn.MaxPool2d(2),
                          nn.Flatten(), nn.Linear(1024, 128), nn.ReLU(), nn.Linear(128, 10))  # fmt: skip
    return classifying(torch, model, normal(torch, 64, 1, 28, 28), 10, adam(torch))


@workload()
def vgg(torch: Any) -> Step:
    """VGG-like, 3x3 convolutions, 16 x 32 px"""
    nn, layers, before = torch.nn, [], 3
    for width in (64, 64, 0, 128, 128, 0, 256, 256, 0):
        layers += [nn.Conv2d(before, width, 3, padding=1), nn.ReLU()] if width else [nn.MaxPool2d(2)]
        before = width or before
    return classifying(
        torch, nn.Sequential(*layers, nn.Flatten(), nn.Linear(4096, 10)), normal(torch, 16, 3, 32, 32), 10
    )


def inverted(torch: Any, inside: int, outside: int, stride: int) -> Any:
    """MobileNet's block: out to six times the channels, depthwise, and back."""
    nn, wide = torch.nn, 6 * inside
    return nn.Sequential(nn.Conv2d(inside, wide, 1, bias=False), nn.BatchNorm2d(wide), nn.ReLU6(),
                         nn.Conv2d(wide, wide, 3, stride, 1, groups=wide, bias=False), nn.BatchNorm2d(wide), nn.ReLU6(),
                         nn.Conv2d(wide, outside, 1, bias=False), nn.BatchNorm2d(outside))  # fmt: skip


@workload(same=1e-2)
def mobilenet(torch: Any) -> Step:
    """MobileNetV2-like, depthwise, 8 x 96 px"""
    nn = torch.nn
    shape = [(32, 16, 1), (16, 24, 2), (24, 24, 1), (24, 32, 2), (32, 64, 2), (64, 64, 1), (64, 96, 1), (96, 160, 2)]
    model = nn.Sequential(nn.Conv2d(3, 32, 3, 2, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU6(),
                          *[inverted(torch, *block) for block in shape],
                          nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(160, 100))  # fmt: skip
    return classifying(torch, model, normal(torch, 8, 3, 96, 96), 100)


@workload()
def convnext(torch: Any) -> Step:
    """ConvNeXt-like, 7x7 depthwise and channels last norms, 8 x 64 px, Adam"""
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, width: int):
            super().__init__()
            self.spread = nn.Conv2d(width, width, 7, padding=3, groups=width)
            self.norm = nn.LayerNorm(width)
            self.mix = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x: Any) -> Any:
            return x + self.mix(self.norm(self.spread(x).permute(0, 2, 3, 1))).permute(0, 3, 1, 2)

    stages: list[Any] = [nn.Conv2d(3, 64, 4, 4), Block(64), Block(64), nn.Conv2d(64, 128, 2, 2), Block(128), Block(128)]
    model = nn.Sequential(*stages, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 100))
    return classifying(torch, model, normal(torch, 8, 3, 64, 64), 100, adam(torch))


@workload()
def unet(torch: Any) -> Step:
    """U-Net of three levels, transposed convolutions, 2 x 128 px, Adam"""
    nn = torch.nn

    def pair(inside: int, outside: int) -> Any:
        return nn.Sequential(
            nn.Conv2d(inside, outside, 3, padding=1), nn.ReLU(), nn.Conv2d(outside, outside, 3, padding=1), nn.ReLU()
        )

    class UNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.down = nn.ModuleList([pair(1, 32), pair(32, 64), pair(64, 128)])
            self.up = nn.ModuleList([nn.ConvTranspose2d(128, 64, 2, 2), nn.ConvTranspose2d(64, 32, 2, 2)])
            self.join = nn.ModuleList([pair(128, 64), pair(64, 32)])
            self.head = nn.Conv2d(32, 2, 1)

        def forward(self, x: Any) -> Any:
            kept = []
            for i, level in enumerate(self.down):
                x = level(torch.nn.functional.max_pool2d(x, 2) if i else x)
                kept.append(x)
            for up, join, beside in zip(self.up, self.join, reversed(kept[:-1])):
                x = join(torch.cat([beside, up(x)], 1))
            return self.head(x)

    model, x, y = equal(UNet()), normal(torch, 2, 1, 128, 128), integers(torch, 2, 2, 128, 128)
    return training(torch, model, lambda: torch.nn.functional.cross_entropy(model(x), y), adam(torch)(model))


@workload()
def swin(torch: Any) -> Step:
    """Attention in shifted windows of 8 x 8, width 96, 8 x 32 x 32 places, Adam"""
    nn, functional = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self, shift: int):
            super().__init__()
            self.shift = shift
            self.first, self.second = nn.LayerNorm(96), nn.LayerNorm(96)
            self.qkv, self.out = nn.Linear(96, 288), nn.Linear(96, 96)
            self.mlp = nn.Sequential(nn.Linear(96, 384), nn.GELU(), nn.Linear(384, 96))

        def attend(self, x: Any) -> Any:
            x = torch.roll(x, (-self.shift, -self.shift), (1, 2))
            windows = x.reshape(8, 4, 8, 4, 8, 96).permute(0, 1, 3, 2, 4, 5).reshape(128, 64, 96)
            q, k, v = self.qkv(windows).reshape(128, 64, 3, 3, 32).permute(2, 0, 3, 1, 4)
            x = functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(128, 64, 96)
            x = self.out(x).reshape(8, 4, 4, 8, 8, 96).permute(0, 1, 3, 2, 4, 5).reshape(8, 32, 32, 96)
            return torch.roll(x, (self.shift, self.shift), (1, 2))

        def forward(self, x: Any) -> Any:
            x = x + self.attend(self.first(x))
            return x + self.mlp(self.second(x))

    model = equal(nn.Sequential(Block(0), Block(4), nn.Linear(96, 10)))
    x, y = normal(torch, 8, 32, 32, 96), integers(torch, 10, 8 * 32 * 32)
    return training(torch, model, lambda: functional.cross_entropy(model(x).reshape(-1, 10), y), adam(torch)(model))


@workload()
def autoencoder(torch: Any) -> Step:
    """Convolutional variational autoencoder, 32 x 32 px, Adam"""
    nn, functional = torch.nn, torch.nn.functional

    class VAE(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encode = nn.Sequential(
                nn.Conv2d(3, 32, 4, 2, 1), nn.ReLU(), nn.Conv2d(32, 64, 4, 2, 1), nn.ReLU(), nn.Flatten()
            )
            self.mean, self.log_variance = nn.Linear(4096, 64), nn.Linear(4096, 64)
            self.decode = nn.Sequential(nn.Linear(64, 4096), nn.Unflatten(1, (64, 8, 8)), nn.ConvTranspose2d(64, 32, 4, 2, 1),
                                        nn.ReLU(), nn.ConvTranspose2d(32, 3, 4, 2, 1), nn.Sigmoid())  # fmt: skip

        def forward(self, x: Any, noise: Any) -> Any:
            h = self.encode(x)
            mean, log_variance = self.mean(h), self.log_variance(h)
            made = self.decode(mean + noise * torch.exp(0.5 * log_variance))
            apart = -0.5 * torch.mean(1 + log_variance - mean.pow(2) - log_variance.exp())
            return functional.binary_cross_entropy(made, x) + apart

    model, x, noise = equal(VAE()), normal(torch, 32, 3, 32, 32).sigmoid(), normal(torch, 32, 64, seed=2)
    return training(torch, model, lambda: model(x, noise), adam(torch)(model))


@workload(same=1e-2)
def gan(torch: Any) -> Step:
    """DCGAN's generator and critic, 16 x 32 px, Adam"""
    nn, functional = torch.nn, torch.nn.functional
    generator = equal(nn.Sequential(nn.ConvTranspose2d(64, 128, 4, bias=False), nn.BatchNorm2d(128), nn.ReLU(),
                                    nn.ConvTranspose2d(128, 64, 4, 2, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU(),
                                    nn.ConvTranspose2d(64, 32, 4, 2, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU(),
                                    nn.ConvTranspose2d(32, 3, 4, 2, 1, bias=False), nn.Tanh()))  # fmt: skip
    critic = equal(nn.Sequential(nn.Conv2d(3, 32, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(32, 64, 4, 2, 1), nn.BatchNorm2d(64),
                                 nn.LeakyReLU(0.2), nn.Conv2d(64, 1, 8), nn.Flatten()))  # fmt: skip
    x, z = normal(torch, 16, 3, 32, 32), normal(torch, 16, 64, 1, 1)
    makes, judges = (torch.optim.Adam(m.parameters(), lr=2e-4) for m in (generator, critic))

    def step() -> Any:
        made = generator(z)
        judges.zero_grad()
        loss = (functional.softplus(-critic(x)) + functional.softplus(critic(made.detach()))).mean()
        loss.backward()
        judges.step()
        makes.zero_grad()
        functional.softplus(-critic(made)).mean().backward()
        makes.step()
        return loss

    return step


@workload()
def wavenet(torch: Any) -> Step:
    """Gated dilated 1-d convolutions, 4 x 4,096 samples, Adam"""
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, dilation: int):
            super().__init__()
            self.gated = nn.Conv1d(32, 64, 3, padding=dilation, dilation=dilation)
            self.out = nn.Conv1d(32, 32, 1)

        def forward(self, x: Any) -> Any:
            a, b = self.gated(x).chunk(2, 1)
            return x + self.out(torch.tanh(a) * torch.sigmoid(b))

    model = equal(nn.Sequential(nn.Conv1d(1, 32, 1), *[Block(2**i) for i in range(8)], nn.Conv1d(32, 1, 1)))
    x = normal(torch, 4, 1, 4096)
    return training(torch, model, lambda: torch.nn.functional.mse_loss(model(x), x.roll(-1, 2)), adam(torch)(model))


@workload()
def volumes(torch: Any) -> Step:
    """3-d convolutions, 2 x 16 x 32 x 32, Adam"""
    nn = torch.nn
    model = nn.Sequential(nn.Conv3d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv3d(16, 32, 3, 2, 1), nn.ReLU(), nn.Conv3d(32, 32, 3, padding=1),
                          nn.ReLU(), nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(32, 10))  # fmt: skip
    return classifying(torch, model, normal(torch, 2, 1, 16, 32, 32), 10, adam(torch))


@workload()
def superresolution(torch: Any) -> Step:
    """Sub-pixel convolutions, 4 x 64 px to 128 px, Adam"""
    nn = torch.nn
    model = equal(nn.Sequential(nn.Conv2d(3, 64, 5, padding=2), nn.Tanh(), nn.Conv2d(64, 32, 3, padding=1), nn.Tanh(),
                                nn.Conv2d(32, 12, 3, padding=1), nn.PixelShuffle(2)))  # fmt: skip
    x, y = normal(torch, 4, 3, 64, 64), normal(torch, 4, 3, 128, 128, seed=1)
    return training(torch, model, lambda: torch.nn.functional.mse_loss(model(x), y), adam(torch)(model))


@workload()
def upsampling(torch: Any) -> Step:
    """Bilinear resizing between convolutions and group norms, 4 x 32 px to 128 px, Adam"""
    nn = torch.nn
    model = equal(nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.GroupNorm(8, 32), nn.SiLU(), nn.Upsample(scale_factor=2, mode="bilinear"),
                                nn.Conv2d(32, 32, 3, padding=1), nn.GroupNorm(8, 32), nn.SiLU(), nn.Upsample(scale_factor=2, mode="bilinear"),
                                nn.Conv2d(32, 3, 3, padding=1)))  # fmt: skip
    x, y = normal(torch, 4, 3, 32, 32), normal(torch, 4, 3, 128, 128, seed=1)
    return training(torch, model, lambda: torch.nn.functional.l1_loss(model(x), y), adam(torch)(model))
