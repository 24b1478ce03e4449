"""One training in the ways of docs/memory/does-not-fit.md: peak bytes of arrays, seconds, and whether the numbers are those of a plain step.

    python benchmarks/does_not_fit.py            # the table of the page, as Markdown
    python benchmarks/does_not_fit.py --write    # put into the page
    python benchmarks/does_not_fit.py --size 64  # a narrower model

A GPT on random text, three steps with AdamW. Each way in a process of its own. Bytes are counted at every allocation and the same
on every run, but for ways that move bytes while they compute, whose peak is a bound that is kept; seconds are those of the
quickest step, and depend on the machine and on what else it does.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

PAGE = Path(__file__).resolve().parent.parent / "docs" / "memory" / "does-not-fit.md"
BEGIN, END = "<!-- measured by benchmarks/does_not_fit.py -->\n", "<!-- end of what is measured -->\n"
STEPS = 3


class Way(NamedTuple):
    """What is done, what to write for it, whether the losses are those of plain steps, and the setting of `train`."""

    name: str
    code: str
    same: bool
    setting: dict[str, Any]
    exact: bool = True  # its bytes


WAYS = [
    Way("as it is, `zero_grad()` just before `backward()`", "", True, {}),
    Way("gradients cleared after the step", "optimizer.step(); optimizer.zero_grad()", True, {"clear": True}),
    Way("optimizer in backward", "optim.in_backward(optimizer)", True, {"fused": True}),
    Way("and its state in 8 bits", "optim.AdamW8bit(...)", False, {"fused": True, "optimizer": "AdamW8bit"}),
    Way("cheap results computed again", "with stores.recompute():", True, {"clear": True, "store": "recompute"}),
    Way("blocks computed again", "block = stores.recompute()(block)", True, {"clear": True, "blocks": True}),
    Way("saved tensors on disk", 'with stores.disk(memory="4 MiB"):', True, {"clear": True, "store": "disk"}, False),
    Way("saved tensors in bfloat16", 'with stores.compress("bf16"):', False, {"clear": True, "store": "compress"}),
    Way("products in bfloat16", 'with torch.autocast("cpu", torch.bfloat16):', False, {"clear": True, "cast": True}),
    Way("the batch in four parts", "(loss / 4).backward()", False, {"clear": True, "parts": 4}),
    Way("adapters, the rest frozen", "lora.apply(model, ...)", False, {"clear": True, "adapters": True}),
    Way("blocks computed again, in backward, 8 bits", "", False, {"fused": True, "optimizer": "AdamW8bit", "blocks": True}),
    Way("a budget of half", "with memory.budget(...):", True, {"budget": 0.5}, False),
    Way("a budget of a quarter, in backward", "memory.budget(..., optimizer=optimizer)", True, {"budget": 0.25, "fused": True}, False),
]  # fmt: skip


def main() -> None:
    """Measure every way, each in a process of its own, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=256, help="width of the model (default: 256)")
    parser.add_argument("--write", action="store_true", help="put the table into the page")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(train(options.size, **json.loads(options.one))))
        return
    text = table([(way, measured(way, options.size)) for way in WAYS])
    print(text)
    if options.write:
        page = PAGE.read_text(encoding="utf-8")
        before, rest = page.split(BEGIN)
        PAGE.write_text(before + BEGIN + "\n" + text + "\n" + END + rest.split(END)[1], encoding="utf-8")


def measured(way: Way, size: int) -> dict[str, Any]:
    """Peak, seconds and losses of one way."""
    setting = dict(way.setting)
    if "budget" in setting:
        setting["budget"] = int(measured(WAYS[0], size)["peak"] * setting["budget"])
    command = [sys.executable, __file__, "--size", str(size), "--one", json.dumps(setting)]
    found: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return found


def table(rows: list[tuple[Way, dict[str, Any]]]) -> str:
    """The page's table.  Raises AssertionError where a way that says so has other losses than plain steps."""
    plain = rows[0][1]
    lines = ["| | what to write | peak, bytes | | step | losses |", "| --- | --- | ---: | ---: | ---: | --- |"]
    for way, found in rows:
        assert not way.same or found["losses"] == plain["losses"], (way.name, found["losses"], plain["losses"])
        code = f"`{way.code}`" if way.code else ""
        peak = f"{found['peak']:,}" if way.exact else f"below {rounded_up(found['peak']):,}"
        lines.append(
            f"| {way.name} | {code} | {peak} | {found['peak'] / plain['peak']:.0%} | about {found['seconds'] / plain['seconds']:.1f}x "
            f"| {'the same' if way.same else 'near'} |"
        )
    return "\n".join(lines) + "\n"


def rounded_up(count: int) -> int:
    """The next million."""
    return -(-count // 1_000_000) * 1_000_000


def train(
    size: int,
    optimizer: str = "AdamW",
    clear: bool = False,
    fused: bool = False,
    blocks: bool = False,
    store: str = "",
    cast: bool = False,
    parts: int = 1,
    adapters: bool = False,
    budget: int = 0,
) -> dict[str, Any]:
    """Three steps in this process."""
    import rushlight as torch
    from rushlight import memory, nn, optim
    from rushlight.models.language import GPT
    from rushlight.nn.utils import lora

    torch.manual_seed(0)
    model = GPT(256, length=64, layers=6, width=size, heads=4)
    tokens = torch.randint(0, 256, (16, 64))
    if adapters:
        lora.apply(model, "blocks.*", rank=4)
    if blocks:
        model.blocks = nn.Sequential(*[stores_of("recompute")()(block) for block in model.blocks])
    made = getattr(optim, optimizer)([p for p in model.parameters() if p.requires_grad], lr=1e-4)
    if fused and not budget:
        optim.in_backward(made)
    bound = memory.budget(budget, optimizer=made if fused else None) if budget else contextlib.nullcontext()
    losses, seconds = [], []
    memory.reset_peak()
    with bound:
        for _ in range(STEPS):
            start, total = time.perf_counter(), 0.0
            for number, part in enumerate(tokens.chunk(parts)):
                with stores_of(store)(), torch.autocast("cpu", torch.bfloat16, enabled=cast):
                    loss = model(part, part)[1] / parts
                if not clear and number == 0:
                    made.zero_grad()
                loss.backward()
                total += loss.item()
                del loss
            made.step()
            if clear:
                made.zero_grad()
            losses.append(total)
            seconds.append(time.perf_counter() - start)
    return {"peak": memory.peak(), "seconds": min(seconds), "losses": losses}


def stores_of(name: str) -> Callable[[], Any]:
    """What makes a store, by a name of the table's."""
    from rushlight import stores

    return {
        "": contextlib.nullcontext,
        "recompute": stores.recompute,
        "disk": lambda: stores.disk(memory="4 MiB"),
        "compress": lambda: stores.compress("bf16"),
    }[name]


if __name__ == "__main__":
    main()
