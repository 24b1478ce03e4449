"""A small encoder trained to fill in masked tokens, then a decoder with a cache: padding, tied weights, accumulation, warm-up, mixed precision."""

import argparse
import contextlib
import json
import math
import os

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset, random_split

PAD, MASK, FIRST = 0, 1, 2


class Sentences(Dataset):
    """Counting sequences with a stride: easy to fill in."""

    def __init__(self, count, vocabulary):
        starts, strides = torch.randint(0, vocabulary, (count,)), torch.randint(1, 4, (count,))
        self.items = [FIRST + (starts[i] + strides[i] * torch.arange(6 + i % 5)) % vocabulary for i in range(count)]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return {"ids": self.items[i], "length": len(self.items[i])}


class Collate:
    def __init__(self, rate):
        self.rate = rate

    def __call__(self, batch):
        ids = pad_sequence([item["ids"] for item in batch], batch_first=True, padding_value=PAD)
        mask = ids.ne(PAD)
        chosen = (torch.rand(ids.shape) < self.rate) & mask
        chosen[:, 2] = True
        return {"input": ids.masked_fill(chosen, MASK), "mask": mask, "target": torch.where(chosen, ids, -100)}


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(dim, 3 * dim, bias=False), nn.Linear(dim, dim)

    def forward(self, x, mask=None, cache=None, causal=False):
        b, n, d = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        if cache is not None:
            if "k" in cache:
                k, v = torch.cat((cache["k"], k), 2), torch.cat((cache["v"], v), 2)
            cache.update(k=k, v=v)
        x = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal and n > 1)
        return self.out(x.transpose(1, 2).flatten(2))


class Layer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.attention, self.norms = (
            Attention(dim, heads),
            nn.ModuleDict({"a": nn.LayerNorm(dim), "f": nn.RMSNorm(dim)}),
        )
        self.feed = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(approximate="tanh"), nn.Linear(2 * dim, dim))

    def forward(self, x, **how):
        x = x + self.attention(self.norms["a"](x), **how)
        return x + self.feed(self.norms["f"](x))


class Model(nn.Module):
    def __init__(self, vocabulary, dim=32, heads=4, layers=2, longest=32):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, dim, padding_idx=PAD), nn.Embedding(longest, dim)
        self.layers = nn.ModuleList([Layer(dim, heads) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, vocabulary)
        self.head.weight = self.tokens.weight
        self.apply(self._init)

    @torch.no_grad()
    def _init(self, m):
        if isinstance(m, (nn.Linear, nn.Embedding)):
            m.weight.normal_(0, 0.1)
            if getattr(m, "bias", None) is not None:
                m.bias.zero_()

    def forward(self, ids, mask=None, caches=None, causal=False):
        past = caches[0]["k"].size(2) if caches and "k" in caches[0] else 0
        x = self.tokens(ids) + self.places(torch.arange(past, past + ids.size(1)))
        how = {"mask": None if mask is None else mask[:, None, None, :], "causal": causal}
        for i, layer in enumerate(self.layers):
            x = layer(x, cache=None if caches is None else caches[i], **how)
        return self.head(self.norm(x))

    @torch.no_grad()
    def generate(self, ids, count):
        caches = [{} for _ in self.layers]
        step = ids
        for _ in range(count):
            step = self(step, caches=caches, causal=True)[:, -1].argmax(-1, keepdim=True)
            ids = torch.cat([ids, step], 1)
        return ids


def groups(model, decay):
    """Decay for matrices alone; the tied one once."""
    seen = {id(p): (name, p) for name, p in model.named_parameters()}
    parts = [[p for _, p in seen.values() if p.dim() >= 2], [p for _, p in seen.values() if p.dim() < 2]]
    return [{"params": parts[0], "weight_decay": decay}, {"params": parts[1], "weight_decay": 0.0}]


def evaluate(model, loader):
    was, total, right = model.training, 0.0, 0
    model.eval()
    with torch.no_grad():
        for batch in loader:
            logits, target = model(batch["input"], batch["mask"]), batch["target"]
            total += F.cross_entropy(logits.flatten(0, 1), target.flatten(), reduction="sum").item()
            right += (logits.argmax(-1) == target).sum().item()
    model.train(was)
    return total / len(loader.dataset), right


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--accumulate", type=int, default=2)
    parser.add_argument("--vocabulary", type=int, default=20)
    parser.add_argument("--bf16", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", default="")
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    data = Sentences(120, args.vocabulary)
    train, valid = random_split(data, [96, 24])
    loaders = [
        DataLoader(part, batch_size=12, shuffle=i == 0, collate_fn=Collate(0.2))
        for i, part in enumerate((train, valid))
    ]
    model = Model(FIRST + args.vocabulary)
    optimizer = torch.optim.AdamW(groups(model, 0.01), lr=1e-2, fused=False)
    steps = math.ceil(len(loaders[0]) / args.accumulate) * args.epochs
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, total_steps=steps, pct_start=0.25)
    scaler = torch.amp.GradScaler("cpu", enabled=args.bf16, init_scale=8.0)
    context = torch.autocast("cpu", torch.bfloat16) if args.bf16 else contextlib.nullcontext()
    for epoch in range(args.epochs):
        shown = 0.0
        for i, batch in enumerate(loaders[0], 1):
            with context:
                logits = model(batch["input"], batch["mask"])
                loss = F.cross_entropy(logits.transpose(1, 2), batch["target"], label_smoothing=0.05) / args.accumulate
            scaler.scale(loss).backward()
            shown += loss.item()
            if i % args.accumulate == 0 or i == len(loaders[0]):
                scaler.unscale_(optimizer)
                norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=True)
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad()
                schedule.step()
        valid_loss, right = evaluate(model, loaders[1])
        print(
            f"epoch {epoch} norm {norm:.3f} loss {shown / len(loaders[0]):.6f} valid loss {valid_loss:.6f} right {right}"
        )
    assert model.head.weight is model.tokens.weight and sum(p.numel() for p in model.parameters()) < 30000
    start = torch.tensor([[FIRST, FIRST + 1, FIRST + 2]])
    model.eval()
    ids = model.generate(start, 4)
    whole = model(ids[:, :-1], causal=True).argmax(-1)[:, 2:]
    assert ids.shape == (1, 7) and torch.equal(whole, ids[:, 3:]), (whole, ids)
    if args.output:
        path = os.path.join(args.output, "model.bin")
        torch.save(model.state_dict(), path)
        with open(os.path.join(args.output, "config.json"), "w") as f:
            json.dump({"vocabulary": args.vocabulary}, f)
        with open(os.path.join(args.output, "config.json")) as f:
            again = Model(FIRST + json.load(f)["vocabulary"])
        missing, unexpected = again.load_state_dict(torch.load(path, mmap=True, weights_only=True), strict=False)
        assert not missing and not unexpected and again.head.weight.data_ptr() == again.tokens.weight.data_ptr()


if __name__ == "__main__":
    main()
