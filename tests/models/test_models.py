"""The models: names, sizes and structure are those of torchvision, weights come from where they should."""

import hashlib
from pathlib import Path

import pytest

import rushlight as torch
from rushlight import models
from rushlight.models import weights as source

PUBLISHED = {
    "resnet18": 11689512,
    "resnet34": 21797672,
    "resnet50": 25557032,
    "resnet101": 44549160,
    "resnet152": 60192808,
    "vit_b_16": 86567656,
    "vit_b_32": 88224232,
    "vit_l_16": 304326632,
    "vit_l_32": 306535400,
    "vit_h_14": 632045800,
}
LARGE = {"vit_l_16", "vit_l_32", "vit_h_14"}


@pytest.fixture(autouse=True)
def no_weights_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Only the files that a test makes are found."""
    monkeypatch.delenv(source.VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "hub-home"))


def count(model: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n in LARGE else n for n in PUBLISHED])
def test_number_of_parameters_is_the_published_one(name: str) -> None:
    assert count(models.get_model(name)) == PUBLISHED[name]


def test_all_models_are_listed() -> None:
    assert models.list_models() == sorted(PUBLISHED)


def test_resnet_names_and_shapes() -> None:
    state = models.resnet50().state_dict()
    assert len(state) == 320
    assert list(state)[:7] == [
        "conv1.weight",
        "bn1.weight",
        "bn1.bias",
        "bn1.running_mean",
        "bn1.running_var",
        "bn1.num_batches_tracked",
        "layer1.0.conv1.weight",
    ]
    assert tuple(state["conv1.weight"].shape) == (64, 3, 7, 7)
    assert tuple(state["layer2.0.downsample.0.weight"].shape) == (512, 256, 1, 1)
    assert tuple(state["layer4.2.conv3.weight"].shape) == (2048, 512, 1, 1)
    assert tuple(state["fc.weight"].shape) == (1000, 2048)
    assert len(models.resnet18().state_dict()) == 122


def test_vit_names_and_shapes() -> None:
    state = models.vit_b_32().state_dict()
    assert len(state) == 152
    assert list(state)[:4] == ["class_token", "conv_proj.weight", "conv_proj.bias", "encoder.pos_embedding"]
    block = "encoder.layers.encoder_layer_11."
    assert [name.removeprefix(block) for name in state if name.startswith(block)] == [
        "ln_1.weight",
        "ln_1.bias",
        "self_attention.in_proj_weight",
        "self_attention.in_proj_bias",
        "self_attention.out_proj.weight",
        "self_attention.out_proj.bias",
        "ln_2.weight",
        "ln_2.bias",
        "mlp.0.weight",
        "mlp.0.bias",
        "mlp.3.weight",
        "mlp.3.bias",
    ]
    assert list(state)[-4:] == ["encoder.ln.weight", "encoder.ln.bias", "heads.head.weight", "heads.head.bias"]
    assert tuple(state["encoder.pos_embedding"].shape) == (1, 50, 768)
    assert tuple(state[block + "self_attention.in_proj_weight"].shape) == (2304, 768)


def test_initialisation() -> None:
    torch.manual_seed(0)
    resnet = models.resnet18(zero_init_residual=True)
    assert float(resnet.conv1.weight.std()) == pytest.approx((2 / (64 * 49)) ** 0.5, rel=0.05)
    assert float(resnet.bn1.weight.sum()) == 64 and float(resnet.layer1[0].bn2.weight.sum()) == 0
    vit = small_vit()
    assert float(vit.heads.head.weight.abs().sum()) == 0 and float(vit.class_token.abs().sum()) == 0
    assert float(vit.encoder.pos_embedding.std()) == pytest.approx(0.02, rel=0.2)
    assert float(vit.conv_proj.weight.std()) == pytest.approx((1 / 48) ** 0.5, rel=0.15)


def small_vit(**options: object) -> models.VisionTransformer:
    return models.VisionTransformer(8, 4, num_layers=2, num_heads=2, hidden_dim=32, mlp_dim=64, **options)


def test_vit_runs_backward() -> None:
    vit = small_vit(num_classes=5, representation_size=16)
    out = vit(torch.rand(3, 3, 8, 8))
    assert tuple(out.shape) == (3, 5)
    torch.nn.init.normal_(vit.heads.head.weight)
    vit(torch.rand(3, 3, 8, 8)).sum().backward()
    assert all(parameter.grad is not None for parameter in vit.parameters())


def test_vit_refuses_wrong_sizes() -> None:
    with pytest.raises(ValueError, match="8 x 8"):
        small_vit()(torch.rand(1, 3, 16, 16))
    with pytest.raises(ValueError, match="multiple"):
        models.VisionTransformer(9, 4, 1, 1, 8, 8)


def test_resnet_runs_backward() -> None:
    model = models.ResNet(models.BasicBlock, (1, 1, 1, 1), num_classes=4)
    out = model(torch.rand(2, 3, 32, 32))
    assert tuple(out.shape) == (2, 4)
    out.sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_resnet_dilates_instead_of_striding() -> None:
    model = models.ResNet(models.Bottleneck, (1, 1, 1, 2), replace_stride_with_dilation=(False, False, True))
    assert model.layer4[0].conv2.dilation == (1, 1) and model.layer4[1].conv2.dilation == (2, 2)
    with pytest.raises(ValueError, match="three booleans"):
        models.ResNet(models.Bottleneck, (1, 1, 1, 1), replace_stride_with_dilation=(True,))
    with pytest.raises(ValueError, match="Bottleneck"):
        models.BasicBlock(64, 64, groups=2)


def test_gpt_learns_a_pattern() -> None:
    torch.manual_seed(0)
    model = models.language.GPT(vocabulary=7, length=8, layers=1, width=16, heads=2)
    assert model.head.weight is model.token.weight
    tokens = torch.arange(9).remainder(7).repeat(4, 1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(60):
        _, loss = model(tokens[:, :-1], tokens[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss))
    assert losses[-1] < 0.2 * losses[0]
    assert tuple(model(tokens[:, :-1]).shape) == (4, 8, 7)


def test_gpt_does_not_look_ahead() -> None:
    model = models.language.GPT(vocabulary=7, length=8, layers=2, width=16, heads=2)
    tokens = torch.tensor([[1, 2, 3, 4]])
    other = torch.tensor([[1, 2, 5, 6]])
    assert torch.allclose(model(tokens)[:, :2], model(other)[:, :2], atol=1e-6)


# Weights ------------------------------------------------------------------------------------------------------------


def test_names_of_weights() -> None:
    published = models.ResNet50_Weights
    assert published.DEFAULT is published.IMAGENET1K_V2
    assert published.verify("DEFAULT") is published.IMAGENET1K_V2
    assert published.verify("ResNet50_Weights.IMAGENET1K_V1") is published.IMAGENET1K_V1
    assert published.DEFAULT.url.endswith("/resnet50-11ad3fa6.pth")
    assert published.DEFAULT.meta["num_params"] == PUBLISHED["resnet50"]
    assert models.get_weight("ViT_L_16_Weights.DEFAULT") is models.ViT_L_16_Weights.IMAGENET1K_V1
    assert models.get_model_weights("resnet18") is models.ResNet18_Weights
    assert models.get_model_weights(models.resnet18) is models.ResNet18_Weights
    with pytest.raises(ValueError, match="IMAGENET1K_V1"):
        models.resnet18(weights="IMAGENET1K_V9")
    with pytest.raises(TypeError, match="ResNet18_Weights"):
        models.resnet18(weights=published.DEFAULT)
    with pytest.raises(ValueError, match="unknown model"):
        models.get_model("resnet19")
    with pytest.raises(ValueError, match="unknown weights"):
        models.get_weight("ResNet18_Weights.V9")


@pytest.mark.parametrize("published", source._WEIGHTS.values(), ids=lambda cls: cls.__name__)
def test_file_names_carry_a_hash(published: type[models.WeightsEnum]) -> None:
    for member in published:
        stem = member.value.file.removesuffix(".pth")
        assert len(stem.rpartition("-")[2]) == 8 and int(stem.rpartition("-")[2], 16) >= 0


def test_missing_weights_say_how_to_get_them() -> None:
    with pytest.raises(FileNotFoundError) as error:
        models.resnet18(weights="DEFAULT")
    message = str(error.value)
    assert "\n" not in message
    for part in ("resnet18-f37072fd.pth", "https://", "checkpoints", "--weights random", source.VARIABLE):
        assert part in message


def test_random_weights(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv(source.VARIABLE, "random")
    assert count(models.resnet18(weights="DEFAULT")) == PUBLISHED["resnet18"]
    assert count(models.resnet18(pretrained=True)) == PUBLISHED["resnet18"]
    assert "random weights" in capsys.readouterr().err


def test_weights_fix_the_number_of_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(source.VARIABLE, "random")
    with pytest.raises(ValueError, match="num_classes=1000"):
        models.resnet18(weights="DEFAULT", num_classes=10)


@pytest.fixture
def saved(tmp_path: Path) -> tuple[Path, dict]:
    """A file with the weights of a ResNet-18, and those weights."""
    torch.manual_seed(3)
    state = models.resnet18().state_dict()
    path = tmp_path / "made-here.pth"
    torch.save(state, str(path))
    return path, state


def digest(state: dict) -> str:
    """One hash over all values in order."""
    sha = hashlib.sha256()
    for tensor in state.values():
        sha.update(tensor.numpy().tobytes())
    return sha.hexdigest()


@pytest.mark.parametrize("place", ["file", "folder", "hub", "own"])
def test_weights_are_loaded(saved: tuple[Path, dict], place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path, state = saved
    name = models.ResNet18_Weights.DEFAULT.value.file
    if place == "file":
        monkeypatch.setenv(source.VARIABLE, str(path))
    else:
        folder = {"folder": path.parent, "own": source.cache_folders()[0], "hub": source.cache_folders()[1]}[place]
        folder.mkdir(parents=True, exist_ok=True)
        path.rename(folder / name)
        if place == "folder":
            monkeypatch.setenv(source.VARIABLE, str(folder))
    torch.manual_seed(4)
    assert digest(models.resnet18(weights="DEFAULT").state_dict()) == digest(state)


def test_weights_named_but_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(source.VARIABLE, "/nowhere/weights.pth")
    with pytest.raises(FileNotFoundError, match="/nowhere/weights"):
        models.resnet18(weights="DEFAULT")
