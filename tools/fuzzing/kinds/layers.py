"""Modules and optimizers with random options: several steps, schedulers, clipping, state_dict there and back."""

from __future__ import annotations

from functools import partial

from ..program import Writer
from .base import Kind, with_torch

PRELUDE = """\
def filled(module):
    with torch.no_grad():
        for number, p in enumerate(module.parameters()):
            p.copy_(torch.sin(torch.arange(p.numel(), dtype=torch.float64) * 1.3 + number).view(p.shape))
    return module
def numbers(*shape, dtype=torch.float64):
    count = 1
    for size in shape:
        count *= size
    return (torch.sin(torch.arange(count, dtype=torch.float64) * 0.7 + 1.) * 2).to(dtype).view(shape)"""
FLAGS = ("True", "False")


def draw(w: Writer) -> None:
    """A module, an optimizer perhaps, and several steps."""
    chosen = w.rng.choice(STEADY + ANY)
    make, shape = chosen(w)
    if not w.do(f"m = filled({make}).double()"):
        return
    w.do(f"x = {shape}" + (".requires_grad_()" if w.maybe(0.5) and "long" not in shape else ""))
    if w.maybe(0.2):
        w.do(
            w.one(
                "m.eval()",
                "m.requires_grad_(False)",
                "m.train()",
                "m.float()\nx = x.detach().float()" if chosen in STEADY else "m.train()",
            )
        )
    optimized = w.maybe(0.6) and optimizer(w, steady=chosen in STEADY)
    scheduled = optimized and w.maybe(0.5) and scheduler(w)
    for _ in range(w.rng.randint(1, 3)):
        if not step(w, bool(optimized), bool(scheduled)):
            break
    if w.maybe(0.3):
        w.do(
            f"m2 = {make}.to(next(iter(m.parameters()), x).dtype)\nloaded = str(m2.load_state_dict(m.state_dict()))\nstate = dict(m2.state_dict())"
        )
    if optimized and w.maybe(0.3):
        w.do("o.load_state_dict(o.state_dict())")
        step(w, True, bool(scheduled))
    w.do("parameters = dict(m.named_parameters())\nbuffers = dict(m.named_buffers())")
    if optimized:
        w.do("kept = o.state_dict()")


def step(w: Writer, optimized: bool, scheduled: bool) -> bool:
    """Forward, backward and what comes after; False where forward is refused."""
    y = w.let("m(x)", "y")
    if y is None:
        return False
    value = w.names[y]
    while isinstance(value, tuple):
        y, value = f"{y}[0]", value[0]
    if not getattr(value, "requires_grad", False):
        return False
    w.do(f"({y} * {y}).sum().backward()" if w.maybe(0.7) else f"{y}.abs().mean().backward()")
    # The bias of keys has no slope: clipping makes something of the rounding that it has instead.
    if w.maybe(0.2) and "ttention" not in str(w.names["m"]):
        w.let(w.one("torch.nn.utils.clip_grad_norm_(m.parameters(), 0.5)", "torch.nn.utils.clip_grad_value_(m.parameters(), 0.1)",
                    "torch.nn.utils.get_total_norm([p.grad for p in m.parameters() if p.grad is not None])",
                    "torch.nn.utils.clip_grad_norm_(m.parameters(), 1., norm_type=float('inf'))"), "n")  # fmt: skip
    if optimized:
        w.do("o.step(lambda: torch.tensor(1.))" if w.maybe(0.1) else "o.step()")
        if w.maybe(0.6):
            w.do(f"o.zero_grad({w.one('', 'set_to_none=False')})")
    if scheduled:
        w.do("c.step(1.)" if "Plateau" in str(type(w.names.get("c"))) else "c.step()")
        w.let("[group['lr'] for group in o.param_groups]", "lr")
    return True


def pick(w: Writer, **choices: tuple[str, ...]) -> str:
    """Some keyword arguments, each with one of its values."""
    return "".join(f", {name}={w.one(*values)}" for name, values in choices.items() if w.maybe(0.5))


def linear(w: Writer) -> tuple[str, str]:
    """Linear and Bilinear, alone and in a sequence."""
    text = f"torch.nn.Linear(3, 2{pick(w, bias=FLAGS)})"
    if w.maybe(0.5):
        text = f"torch.nn.Sequential({text}, torch.nn.{w.one('Tanh', 'GELU', 'ReLU', 'SiLU')}(), torch.nn.Linear(2, 2))"
    if w.maybe(0.1):
        text = "torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(3, 2))"
    return text, w.one("numbers(2, 3)", "numbers(3)", "numbers(0, 3)", "numbers(2, 2, 3)")


def convolution(w: Writer) -> tuple[str, str]:
    """Conv1d, 2d, 3d."""
    n = w.rng.choice((1, 2, 2, 3))
    options = pick(w, stride=("2", "1"), padding=("1", "0", "'same'"), dilation=("2", "1"), groups=("2", "1"), bias=FLAGS,
                   padding_mode=("'circular'", "'reflect'", "'replicate'", "'zeros'"))  # fmt: skip
    return f"torch.nn.Conv{n}d(2, 4, {w.rng.randint(1, 3)}{options})", f"numbers(2, 2, {', '.join(['5'] * n)})"


def transposed(w: Writer) -> tuple[str, str]:
    """ConvTranspose1d, 2d."""
    n = w.rng.choice((1, 2))
    options = pick(
        w,
        stride=("2", "3"),
        padding=("1", "0"),
        output_padding=("1", "0"),
        groups=("2", "1"),
        bias=FLAGS,
        dilation=("2", "1"),
    )
    return f"torch.nn.ConvTranspose{n}d(2, 4, {w.rng.randint(1, 3)}{options})", f"numbers(1, 2, {', '.join(['4'] * n)})"


def norm(w: Writer) -> tuple[str, str]:
    """Normalizations."""
    n = w.rng.choice((1, 2))
    shape = f"numbers(3, 4, {', '.join(['3'] * n)})"
    batch = pick(w, eps=("0.1", "1e-3"), momentum=("0.5", "None"), affine=FLAGS, track_running_stats=FLAGS)
    return w.rng.choice(
        (
            (f"torch.nn.BatchNorm{n}d(4{batch})", shape),
            (f"torch.nn.InstanceNorm{n}d(4{batch})", shape),
            (
                f"torch.nn.LayerNorm({w.one('3', '(4, 3)')}{pick(w, eps=('0.1',), elementwise_affine=FLAGS, bias=FLAGS)})",
                "numbers(2, 4, 3)",
            ),
            (f"torch.nn.GroupNorm(2, 4{pick(w, eps=('0.1',), affine=FLAGS)})", shape),
            (f"torch.nn.RMSNorm(3{pick(w, eps=('0.1',), elementwise_affine=FLAGS)})", "numbers(2, 4, 3)"),
            (f"torch.nn.LocalResponseNorm({w.rng.randint(1, 3)})", shape),
        )
    )


def embedding(w: Writer) -> tuple[str, str]:
    """Embedding and EmbeddingBag."""
    options = pick(w, padding_idx=("0", "1", "-1"), max_norm=("1.0",), scale_grad_by_freq=FLAGS)
    bag = pick(w, mode=("'sum'", "'max'", "'mean'"), padding_idx=("0", "1"))
    indices = w.one("torch.tensor([[0, 1], [2, 0]])", "torch.tensor([[3, 3], [1, 1]])")
    return w.rng.choice(
        (
            (f"torch.nn.Embedding(4, 3{options})", f"{indices}.long()"),
            (f"torch.nn.EmbeddingBag(4, 3{bag})", f"{indices}.long()"),
        )
    )


def recurrent(w: Writer) -> tuple[str, str]:
    """RNN, LSTM, GRU and their cells."""
    if w.maybe(0.3):
        return f"torch.nn.{w.one('RNNCell', 'LSTMCell', 'GRUCell')}(3, 2{pick(w, bias=FLAGS)})", w.one(
            "numbers(2, 3)", "numbers(3)"
        )
    kind = w.one("RNN", "LSTM", "GRU", "LSTM")
    options = pick(w, num_layers=("2", "1"), bidirectional=FLAGS, batch_first=FLAGS, bias=FLAGS)
    options += (
        ", proj_size=1"
        if kind == "LSTM" and w.maybe(0.3)
        else ", nonlinearity='relu'"
        if kind == "RNN" and w.maybe(0.3)
        else ""
    )
    return f"torch.nn.{kind}(3, 2{options})", w.one("numbers(4, 2, 3)", "numbers(4, 3)")


def attention(w: Writer) -> tuple[str, str]:
    """Attention and transformer layers, as modules of one input."""
    heads = f"torch.nn.MultiheadAttention(4, 2{pick(w, bias=FLAGS, batch_first=FLAGS, add_bias_kv=FLAGS, add_zero_attn=FLAGS)})"
    layer = f"torch.nn.TransformerEncoderLayer(4, 2, 3, 0.0{pick(w, batch_first=FLAGS, norm_first=FLAGS, activation=('torch.nn.functional.gelu', chr(39) + 'relu' + chr(39)), bias=FLAGS)})"
    text = w.one(layer, layer, f"torch.nn.TransformerEncoder({layer}, 2)")
    if w.maybe(0.6):
        return text, "numbers(2, 3, 4)"
    options = pick(w, need_weights=FLAGS, average_attn_weights=FLAGS)
    return (
        f"(lambda s: setattr(s, 'forward', lambda x: s[0](x, x, x{options})) or s)(torch.nn.Sequential({heads}))",
        "numbers(2, 3, 4)",
    )


def pool(w: Writer) -> tuple[str, str]:
    """Pooling."""
    n = w.rng.choice((1, 2, 3))
    window = pick(w, stride=("1", "2"), padding=("1", "0"), ceil_mode=FLAGS)
    return w.rng.choice(
        (
            (
                f"torch.nn.MaxPool{n}d(2{window}{pick(w, dilation=('1', '2'), return_indices=FLAGS)})",
                f"numbers(2, 2, {', '.join(['5'] * n)})",
            ),
            (
                f"torch.nn.AvgPool{n}d(2{window}{pick(w, count_include_pad=FLAGS)})",
                f"numbers(2, 2, {', '.join(['5'] * n)})",
            ),
            (f"torch.nn.AdaptiveAvgPool{n}d({w.rng.randint(1, 4)})", f"numbers(2, 2, {', '.join(['5'] * n)})"),
            (f"torch.nn.AdaptiveMaxPool{n}d({w.rng.randint(1, 4)})", f"numbers(2, 2, {', '.join(['5'] * n)})"),
            (
                f"torch.nn.LPPool{min(n, 2)}d(2, 2{pick(w, stride=('1',), ceil_mode=FLAGS)})",
                f"numbers(2, 2, {', '.join(['5'] * min(n, 2))})",
            ),
        )
    )


def shaped(w: Writer) -> tuple[str, str]:
    """Layers that move elements."""
    return w.rng.choice(
        (
            (
                f"torch.nn.Upsample(scale_factor=2, mode={w.one(repr('nearest'), repr('bilinear'), repr('bicubic'))})",
                "numbers(1, 2, 3, 3)",
            ),
            ("torch.nn.PixelShuffle(2)", "numbers(1, 4, 2, 2)"),
            ("torch.nn.PixelUnshuffle(2)", "numbers(1, 1, 4, 4)"),
            (f"torch.nn.Unfold(2{pick(w, padding=('1',), stride=('2',), dilation=('2',))})", "numbers(1, 2, 4, 4)"),
            (f"torch.nn.Fold((3, 3), 2{pick(w, padding=('0',))})", "numbers(1, 8, 4)"),
            (
                f"torch.nn.{w.one('ReflectionPad2d', 'ReplicationPad2d', 'ZeroPad2d', 'CircularPad2d')}({w.one('1', '(1, 0, 2, 1)', '(0, -1, 1, 0)')})",
                "numbers(1, 2, 3, 3)",
            ),
            (f"torch.nn.Flatten({w.one('', '0', '1, -1', '-2')})", "numbers(2, 3, 2)"),
            ("torch.nn.Unflatten(1, (2, 2))", "numbers(2, 4)"),
            ("torch.nn.ChannelShuffle(2)", "numbers(1, 4, 2, 2)"),
        )
    )


def activation(w: Writer) -> tuple[str, str]:
    """Activations, with inputs that meet their kinks."""
    name = w.one("ReLU", "ReLU6", "ELU", "SELU", "CELU", "GELU", "GELU('tanh')", "SiLU", "Mish", "Softplus", "Softplus(2, 1)", "Softsign", "Tanh",
                 "Tanhshrink", "Sigmoid", "LogSigmoid", "Hardtanh", "Hardtanh(-1, 1)", "Hardswish", "Hardsigmoid", "Hardshrink", "Softshrink",
                 "LeakyReLU(0.2)", "PReLU", "PReLU(3)", "Threshold(1., 5.)", "GLU(0)", "Softmax(-1)", "LogSoftmax(0)", "Softmin(1)", "RReLU(0.3, 0.3)")  # fmt: skip
    kinks = "torch.tensor([[0., 1., -1., 3., -3., 6.], [0.5, -0.5, 2., 1.5, 20., -30.]], dtype=torch.float64)"
    text = (
        name
        if "(" in name
        else f"{name}({'inplace=True' if name in ('ReLU', 'SiLU', 'ELU', 'Hardswish') and w.maybe(0.2) else ''})"
    )
    return f"torch.nn.Sequential(torch.nn.{text})", w.one(kinks, "numbers(2, 3)", "numbers(2, 3, 2)")


def lossy(w: Writer) -> tuple[str, str]:
    """Losses with a target of their own, as modules of one input."""
    reduction = f"reduction={w.one(repr('mean'), repr('sum'), repr('none'))}"
    floats, classes, signs = (
        "numbers(3, 4).sigmoid()",
        "torch.tensor([0, 3, 1])",
        "torch.tensor([1., -1., 1.], dtype=torch.float64)",
    )
    weight = w.one("", ", weight=numbers(4).abs()")
    loss, target = w.rng.choice(
        (
            (f"MSELoss({reduction})", floats),
            (f"L1Loss({reduction})", floats),
            (f"SmoothL1Loss({reduction}, beta={w.one('0.5', '1.', '0.')})", floats),
            (f"HuberLoss({reduction}, delta={w.one('0.5', '2.')})", floats),
            (f"BCEWithLogitsLoss({reduction}{weight}{pick(w, pos_weight=('numbers(4).abs()',))})", floats),
            (
                f"CrossEntropyLoss({reduction}{weight}{pick(w, ignore_index=('3', '0'), label_smoothing=('0.1', '1.0'))})",
                w.one(classes, floats),
            ),
            (f"NLLLoss({reduction}{weight}{pick(w, ignore_index=('3', '0'))})", classes),
            (f"KLDivLoss({reduction}{pick(w, log_target=FLAGS)})", floats),
            (f"PoissonNLLLoss({reduction}{pick(w, log_input=FLAGS, full=FLAGS)})", floats),
            (f"SoftMarginLoss({reduction})", f"{floats}.round() * 2 - 1"),
            (f"MultiLabelSoftMarginLoss({reduction}{weight})", f"{floats}.round()"),
            (f"MultiMarginLoss({reduction}{pick(w, p=('2', '1'), margin=('0.5',))}{weight})", classes),
            (f"HingeEmbeddingLoss({reduction}, margin=0.5)", f"{floats}.round() * 2 - 1"),
            (f"CosineEmbeddingLoss({reduction}, margin=0.1)", f"{floats}, {signs}"),
            (f"MarginRankingLoss({reduction}, margin=0.1)", f"{floats}, 1"),
            (f"TripletMarginLoss({reduction}{pick(w, p=('1', '3'), swap=FLAGS)})", f"{floats}, -numbers(3, 4)"),
            (f"GaussianNLLLoss({reduction}{pick(w, full=FLAGS)})", f"{floats}, numbers(3, 4).abs()"),
        )
    )
    holder = "torch.nn.Sequential(torch.nn.Linear(4, 4))"
    return (
        f"(lambda s: setattr(s, 'forward', lambda x: torch.nn.{loss}.double()(s[0](x), {target})) or s)({holder})",
        "numbers(3, 4)",
    )


def optimizer(w: Writer, steady: bool) -> bool:
    """An optimizer for all parameters of m.

    steady: whether no gradient is zero but for rounding, so that it may be divided by its size.
    """
    decay = ("0.1", "0.0")
    table = {
        "SGD": pick(
            w,
            lr=("0.1", "0.5"),
            momentum=("0.9", "0.5"),
            dampening=("0.1",),
            weight_decay=decay,
            nesterov=("True",),
            maximize=FLAGS,
        ),
        "Adam": pick(
            w, lr=("0.1",), betas=("(0.8, 0.9)",), eps=("1e-3",), weight_decay=decay, amsgrad=FLAGS, maximize=FLAGS
        ),
        "AdamW": pick(w, lr=("0.1",), betas=("(0.8, 0.9)",), weight_decay=decay, amsgrad=FLAGS, maximize=FLAGS),
        "Adamax": pick(w, lr=("0.1",), betas=("(0.8, 0.9)",), weight_decay=decay, maximize=FLAGS),
        "NAdam": pick(
            w, lr=("0.1",), momentum_decay=("0.01",), weight_decay=decay, decoupled_weight_decay=FLAGS, maximize=FLAGS
        ),
        "RAdam": pick(
            w, lr=("0.1",), betas=("(0.5, 0.6)",), weight_decay=decay, decoupled_weight_decay=FLAGS, maximize=FLAGS
        ),
        "Adagrad": pick(
            w, lr=("0.1",), lr_decay=("0.1",), weight_decay=decay, initial_accumulator_value=("0.5",), maximize=FLAGS
        ),
        "Adadelta": pick(w, lr=("0.1",), rho=("0.5",), weight_decay=decay, maximize=FLAGS),
        "RMSprop": pick(
            w, lr=("0.1",), alpha=("0.5",), momentum=("0.9",), centered=FLAGS, weight_decay=decay, maximize=FLAGS
        ),
        "Rprop": pick(w, lr=("0.1",), etas=("(0.4, 1.3)",), maximize=FLAGS),
        "ASGD": pick(w, lr=("0.1",), t0=("1",), lambd=("0.1",), weight_decay=decay, maximize=FLAGS),
        "Adafactor": pick(w, lr=("0.1",), beta2_decay=("-0.5",), d=("0.5",), weight_decay=decay, maximize=FLAGS),
    }
    name = w.rng.choice(list(table)) if steady else "SGD"
    if not steady:
        table[name] = pick(w, momentum=("0.9",), weight_decay=decay)
    if name == "SGD" and "lr" not in table[name]:
        table[name] += ", lr=0.001"
    groups = (
        "list(m.parameters())"
        if w.maybe(0.8)
        else "[{'params': [p], 'lr': 0.001 * k} for k, p in enumerate(m.parameters(), 1)]"
    )
    return w.do(f"o = torch.optim.{name}({groups}{table[name]})")


def scheduler(w: Writer) -> bool:
    """A scheduler for o."""
    s = "torch.optim.lr_scheduler"
    return w.do("c = " + w.one(
        f"{s}.StepLR(o, 2{pick(w, gamma=('0.5',))})", f"{s}.ExponentialLR(o, 0.5)", f"{s}.CosineAnnealingLR(o, 3{pick(w, eta_min=('0.01',))})",
        f"{s}.OneCycleLR(o, 0.05, total_steps=5{pick(w, anneal_strategy=(repr('linear'),), three_phase=FLAGS)})",
        f"{s}.CyclicLR(o, 0.01, 0.05, step_size_up=2, cycle_momentum=False, mode={w.one(repr('triangular'), repr('triangular2'), repr('exp_range'))}, gamma=0.9)",
        f"{s}.ReduceLROnPlateau(o, patience=0{pick(w, factor=('0.5',), threshold=('0.1',))})", f"{s}.LinearLR(o, 0.1, 1., 3)",
        f"{s}.PolynomialLR(o, 3, 2.)", f"{s}.MultiStepLR(o, [1, 2], 0.5)", f"{s}.CosineAnnealingWarmRestarts(o, 2{pick(w, T_mult=('2',))})",
        f"{s}.ConstantLR(o, 0.5, 2)", f"{s}.LambdaLR(o, lambda n: 1 / (n + 1))", f"{s}.MultiplicativeLR(o, lambda n: 0.9)",
        f"{s}.SequentialLR(o, [{s}.ConstantLR(o, 0.1, 2), {s}.ExponentialLR(o, 0.5)], milestones=[2])",
        f"{s}.ChainedScheduler([{s}.ConstantLR(o, 0.1, 2), {s}.ExponentialLR(o, 0.5)], optimizer=o)",
    ))  # fmt: skip


STEADY = (linear, embedding, recurrent)
ANY = (convolution, transposed, norm, attention, pool, shaped, activation, activation, lossy)
FACTS = ("grad_fn", "version", "storage", "offset", "output_nr", "stride", "leniency")
KIND = Kind("layers", draw, partial(with_torch, PRELUDE), FACTS)
