"""Transformers and tables of embeddings."""

from typing import Any

from workloads.registry import Step, equal, integers, normal, shipped, training, workload


def gpt_model(torch: Any, length: int = 256, layers: int = 6, vocabulary: int = 8192) -> Any:
    return equal(
        shipped(torch, "language").GPT(vocabulary=vocabulary, length=length, layers=layers, width=384, heads=6)
    )


def adamw(torch: Any, model: Any) -> Any:
    return torch.optim.AdamW(model.parameters(), lr=3e-4)


@workload()
def gpt(torch: Any) -> Step:
    """GPT of 6 layers, d 384, 8 x 256 tokens, AdamW"""
    model, data = gpt_model(torch), integers(torch, 8192, 8, 257)
    return training(torch, model, lambda: model(data[:, :-1], data[:, 1:])[1], adamw(torch, model))


@workload(same=3e-2)
def gpt_bfloat16(torch: Any) -> Step:
    """The same GPT under autocast in bfloat16"""
    model, data = gpt_model(torch), integers(torch, 8192, 8, 257)

    def loss() -> Any:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return model(data[:, :-1], data[:, 1:])[1]

    return training(torch, model, loss, adamw(torch, model))


@workload()
def gpt_long(torch: Any) -> Step:
    """The same GPT with 2 layers on one sequence of 2,048 tokens, AdamW"""
    model, data = gpt_model(torch, 2048, 2), integers(torch, 8192, 1, 2049)
    return training(torch, model, lambda: model(data[:, :-1], data[:, 1:])[1], adamw(torch, model))


@workload()
def gpt_inference(torch: Any) -> Step:
    """The same GPT without gradients, one sequence of 64 tokens"""
    model, data = gpt_model(torch, 64).eval(), integers(torch, 8192, 1, 64)
    return torch.no_grad()(lambda: model(data)[0].float().mean())


@workload()
def llama(torch: Any) -> Step:
    """Four LLaMA blocks, rotary embedding, grouped heads, gated units, d 256, 4 x 256 tokens, AdamW"""
    nn, functional = torch.nn, torch.nn.functional
    turns = torch.outer(torch.arange(256).float(), 10000.0 ** (-torch.arange(0, 32, 2).float() / 32))
    cosine, sine = turns.cos().repeat_interleave(2, 1), turns.sin().repeat_interleave(2, 1)

    def turned(x: Any) -> Any:
        across = torch.stack([-x[..., 1::2], x[..., ::2]], -1).flatten(-2)
        return x * cosine + across * sine

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.RMSNorm(256), nn.RMSNorm(256)
            self.q, self.k, self.v = (nn.Linear(256, n, bias=False) for n in (256, 64, 64))
            self.out, self.down = nn.Linear(256, 256, bias=False), nn.Linear(688, 256, bias=False)
            self.gate, self.up = nn.Linear(256, 688, bias=False), nn.Linear(256, 688, bias=False)

        def forward(self, x: Any) -> Any:
            h = self.first(x)
            q, k, v = (p(h).unflatten(-1, (-1, 32)).transpose(1, 2) for p in (self.q, self.k, self.v))
            k, v = k.repeat_interleave(4, 1), v.repeat_interleave(4, 1)
            h = functional.scaled_dot_product_attention(turned(q), turned(k), v, is_causal=True)
            x = x + self.out(h.transpose(1, 2).flatten(2))
            h = self.second(x)
            return x + self.down(functional.silu(self.gate(h)) * self.up(h))

    model = equal(
        nn.Sequential(
            nn.Embedding(4096, 256), *[Block() for _ in range(4)], nn.RMSNorm(256), nn.Linear(256, 4096, bias=False)
        )
    )
    data = integers(torch, 4096, 4, 257)
    return training(torch, model, lambda: functional.cross_entropy(model(data[:, :-1]).flatten(0, 1), data[:, 1:].flatten()), adamw(torch, model))  # fmt: skip


@workload()
def bert(torch: Any) -> Step:
    """nn.TransformerEncoder of 4 layers with a padding mask, d 256, 8 x 128 tokens, AdamW"""
    nn, functional = torch.nn, torch.nn.functional

    class Reader(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(4096, 256)
            layer = nn.TransformerEncoderLayer(256, 8, 1024, dropout=0.0, activation="gelu", batch_first=True)
            self.encode = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
            self.head = nn.Linear(256, 2)

        def forward(self, words: Any, padding: Any) -> Any:
            return self.head(self.encode(self.embed(words), src_key_padding_mask=padding)[:, 0])

    model, words, y = equal(Reader()), integers(torch, 4096, 8, 128), integers(torch, 2, 8)
    padding = torch.arange(128)[None] >= integers(torch, 64, 8, 1) + 64
    return training(torch, model, lambda: functional.cross_entropy(model(words, padding), y), adamw(torch, model))


@workload()
def translation(torch: Any) -> Step:
    """nn.Transformer, 2 and 2 layers, d 128, 8 x 64 tokens, Adam"""
    nn, functional = torch.nn, torch.nn.functional
    model = nn.ModuleDict({"embed": nn.Embedding(2000, 128), "head": nn.Linear(128, 2000),
                           "core": nn.Transformer(128, 4, 2, 2, 512, dropout=0.0, batch_first=True)})  # fmt: skip
    equal(model)
    source, target = integers(torch, 2000, 8, 64), integers(torch, 2000, 8, 65, seed=1)
    mask = nn.Transformer.generate_square_subsequent_mask(64)

    def loss() -> Any:
        h = model["core"](model["embed"](source), model["embed"](target[:, :-1]), tgt_mask=mask)
        return functional.cross_entropy(model["head"](h).flatten(0, 1), target[:, 1:].flatten())

    return training(torch, model, loss, torch.optim.Adam(model.parameters(), lr=1e-4))


@workload()
def mixture(torch: Any) -> Step:
    """A mixture of 8 experts, two for each of 2,048 tokens, d 256, Adam"""
    nn, functional = torch.nn, torch.nn.functional

    class Mixture(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gate = nn.Linear(256, 8)
            self.experts = nn.ModuleList(
                [nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 256)) for _ in range(8)]
            )

        def forward(self, x: Any) -> Any:
            weight, which = torch.topk(functional.softmax(self.gate(x), -1), 2)
            out = torch.zeros_like(x)
            for i, expert in enumerate(self.experts):
                token, place = torch.where(which == i)
                out = out.index_add(0, token, expert(x[token]) * weight[token, place, None])
            return out

    model, x = equal(Mixture()), normal(torch, 2048, 256)
    return training(
        torch, model, lambda: functional.mse_loss(model(x), x), torch.optim.Adam(model.parameters(), lr=1e-4)
    )


@workload()
def recommender(torch: Any) -> Step:
    """26 tables of 20,000 x 16 embeddings and an MLP, batch 512, sparse gradients, SGD"""
    nn = torch.nn
    model = nn.ModuleDict({"tables": nn.ModuleList([nn.EmbeddingBag(20000, 16, mode="sum", sparse=True) for _ in range(26)]),
                           "top": nn.Sequential(nn.Linear(26 * 16, 256), nn.ReLU(), nn.Linear(256, 1))})  # fmt: skip
    equal(model)
    bags, y = integers(torch, 20000, 26, 512, 4), integers(torch, 2, 512).float()

    def loss() -> Any:
        found = torch.cat([table(bag) for table, bag in zip(model["tables"], bags)], 1)
        return nn.functional.binary_cross_entropy_with_logits(model["top"](found)[:, 0], y)

    return training(torch, model, loss, torch.optim.SGD(model.parameters(), lr=0.01))


@workload()
def skipgram(torch: Any) -> Step:
    """Word vectors by negative sampling, 10,000 x 128, batch 1,024, Adam"""
    nn = torch.nn
    model = equal(nn.ModuleList([nn.Embedding(10000, 128), nn.Embedding(10000, 128)]))
    centre, context = integers(torch, 10000, 1024), integers(torch, 10000, 1024, 6, seed=1)
    signs = torch.tensor([1.0, -1.0, -1.0, -1.0, -1.0, -1.0])

    def loss() -> Any:
        found = torch.bmm(model[1](context), model[0](centre)[:, :, None])[..., 0]
        return -nn.functional.logsigmoid(found * signs).mean()

    return training(torch, model, loss, torch.optim.Adam(model.parameters(), lr=1e-3))


@workload()
def lora(torch: Any) -> Step:
    """A frozen MLP of width 1,024 with low-rank additions, 256 rows, AdamW"""
    nn = torch.nn

    class Added(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.frozen = nn.Linear(1024, 1024).requires_grad_(False)
            self.a, self.b = nn.Parameter(torch.zeros(8, 1024)), nn.Parameter(torch.zeros(1024, 8))

        def forward(self, x: Any) -> Any:
            return self.frozen(x) + x @ self.a.T @ self.b.T

    model = equal(nn.Sequential(*[layer for _ in range(4) for layer in (Added(), nn.GELU())]))
    x = normal(torch, 256, 1024)
    few = [p for p in model.parameters() if p.requires_grad]
    return training(torch, model, lambda: model(x).square().mean(), torch.optim.AdamW(few, lr=1e-4))
