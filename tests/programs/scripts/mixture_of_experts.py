"""A mixture of experts: a gate sends every row to two of six networks; the load is kept even; bfloat16 on request."""

import argparse
from contextlib import nullcontext

import torch
from torch import nn
from torch.nn import functional as F
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR


class Expert(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.w1, self.w2, self.w3 = (
            nn.Linear(a, b, bias=False) for a, b in ((dim, hidden), (hidden, dim), (dim, hidden))
        )

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class MoE(nn.Module):
    def __init__(self, dim, hidden, experts=6, k=2, noisy=True):
        super().__init__()
        self.gate = nn.Linear(dim, experts, bias=False)
        self.noise = nn.Linear(dim, experts, bias=False) if noisy else None
        self.experts = nn.ModuleList(Expert(dim, hidden) for _ in range(experts))
        self.k = k
        self.register_buffer("usage", torch.zeros(experts), persistent=False)

    def forward(self, x):
        shape = x.shape
        x = x.reshape(-1, shape[-1])
        logits = self.gate(x)
        if self.training and self.noise is not None:
            logits = logits + torch.randn_like(logits) * F.softplus(self.noise(x))
        weights, chosen = torch.topk(logits, self.k, dim=-1)
        weights = F.softmax(weights, dim=-1, dtype=torch.float).to(x.dtype)
        out = torch.zeros_like(x)
        mask = F.one_hot(chosen, num_classes=len(self.experts)).permute(2, 1, 0)
        for e, expert in enumerate(self.experts):
            slot, row = torch.where(mask[e])
            if row.numel() == 0:
                continue
            out.index_add_(0, row, (expert(x[row]) * weights[row, slot, None]).to(out.dtype))
        self.usage += torch.bincount(chosen.flatten(), minlength=len(self.experts))
        share = mask.float().sum(1).mean(1)
        self.balance = (share * logits.softmax(-1).mean(0)).sum() * len(self.experts)
        return out.view(shape)


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm, self.moe = nn.RMSNorm(dim), MoE(dim, 2 * dim)

    def forward(self, x):
        return x + self.moe(self.norm(x))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=12)
    p.add_argument("--accumulate", type=int, default=2)
    p.add_argument("--bf16", action="store_true")
    p.add_argument("--checkpointing", action="store_true")
    p.add_argument("--compile", action="store_true")
    p.add_argument("--seed", type=int, default=0)
    args = p.parse_args()
    torch.manual_seed(args.seed)
    model = nn.Sequential(nn.Linear(6, 16), Block(16), Block(16), nn.Linear(16, 1))
    decay = [q for q in model.parameters() if q.dim() >= 2]
    others = [q for q in model.parameters() if q.dim() < 2]
    optimizer = torch.optim.AdamW(
        [{"params": decay, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}], lr=1e-2, fused=False
    )
    warmup = LinearLR(optimizer, start_factor=0.1, total_iters=3)
    schedule = SequentialLR(optimizer, [warmup, CosineAnnealingLR(optimizer, T_max=args.steps)], milestones=[3])
    run = torch.compile(model) if args.compile else model
    context = torch.autocast(device_type="cpu", dtype=torch.bfloat16) if args.bf16 else nullcontext()
    for step in range(args.steps):
        total = 0.0
        for _ in range(args.accumulate):
            x = torch.randn(4, 16, 6)
            y = torch.where(x[..., :1] > 0, x[..., 1:2] * 2, x[..., 2:3].abs())
            with context:
                if args.checkpointing:
                    out = torch.utils.checkpoint.checkpoint_sequential(model, 2, x, use_reentrant=False)
                else:
                    out = run(x)
                loss = F.smooth_l1_loss(out.float(), y) + 0.01 * sum(b.moe.balance for b in (model[1], model[2]))
            (loss / args.accumulate).backward()
            total += loss.item() / args.accumulate
        torch.nn.utils.clip_grad_value_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad(set_to_none=True)
        if step % 3 == 0:
            print(f"step {step} loss {total:.6f} lr {schedule.get_last_lr()[0]:.5f}")
    print("usage", [int(u) for u in model[1].moe.usage], f"last loss {total:.6f}")


if __name__ == "__main__":
    import torch.utils.checkpoint

    main()
