"""A small GPT learns a text by heart, letter by letter; with the optimizer in backward, so no gradient is kept."""

import codecs
import contextlib
import io
import sys

import rushlight as torch
from rushlight import memory, optim
from rushlight.models.language import GPT

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 300
with contextlib.redirect_stdout(io.StringIO()):
    import this  # the Zen of Python

text = codecs.decode(this.s, "rot13")
letters = sorted(set(text))
numbers = torch.tensor([letters.index(letter) for letter in text])
length = 64

torch.manual_seed(0)
model = GPT(len(letters), length=length, width=128, layers=3, heads=4)
optimizer = optim.AdamW(model.parameters(), lr=3e-3)
schedule = optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=max(steps, 2))
optim.in_backward(optimizer)


@torch.no_grad()
def continued(start: str, count: int) -> str:
    """What the model says next, the likeliest letter each time."""
    found = [letters.index(letter) for letter in start]
    for _ in range(count):
        logits = model(torch.tensor([found[-length:]]))
        found.append(int(logits[0, -1].argmax()))
    return "".join(letters[number] for number in found)


print(
    f"{sum(p.numel() for p in model.parameters()):,} parameters, a text of {len(text)} letters, {len(letters)} of them"
)
memory.reset_peak()
for step in range(steps):
    places = torch.randint(0, len(text) - length - 1, (16,))
    batch = torch.stack([numbers[at : at + length + 1] for at in places.tolist()])
    _, loss = model(batch[:, :-1], batch[:, 1:])
    loss.backward()
    schedule.step()
    if step % max(steps // 6, 1) == 0 or step == steps - 1:
        said = continued("Beautiful", 40).replace("\n", "⏎")
        print(f"step {step:4}  loss {loss.item():5.3f}  {said}")
print(f"peak {memory.peak() / 1e6:.1f} MB")
