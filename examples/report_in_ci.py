"""A report in continuous integration: fail where a step needs more memory than it did, and leave a page that says why.

`pytest` does the same with `@pytest.mark.limit_memory("30 MB")`; a job keeps memory.json and memory.html as its artifacts.
"""

import json
import sys
from pathlib import Path

import rushlight as torch
from rushlight import memory, nn

size = int(sys.argv[1]) if len(sys.argv) > 1 else 256
expected = Path("memory.json")  # of the last good run; in a repository it is committed


def step(waste: bool = False) -> memory.Recording:
    """What one training step does, recorded."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(size, 4 * size), nn.GELU(), nn.Linear(4 * size, size))
    optimizer = torch.optim.AdamW(model.parameters())
    memory.record_history()
    for number in range(2):
        memory.mark(f"step {number}")
        h = model(torch.randn(2 * size, size))
        kept = [h * i for i in range(1, 5)] if waste else [h]  # somebody's change
        sum(part.square().mean() for part in kept).backward()
        optimizer.step()
        optimizer.zero_grad()
    memory.record_history(None)
    return memory.recording()


def check(recording: memory.Recording, name: str) -> bool:
    """Compare with what is expected, within 2 %; write what is needed to see why."""
    peak = recording.peak()[0] - recording.initial_bytes()
    if not expected.exists():
        expected.write_text(json.dumps({"peak": peak}))
        memory.save(recording, "memory.pickle")
    allowed = json.loads(expected.read_text())["peak"] * 1.02
    verdict = "passes" if peak <= allowed else "FAILS"
    print(f"{name}: peak {peak / 1e6:.2f} MB, allowed {allowed / 1e6:.2f} MB: {verdict}")
    if peak > allowed:
        page = memory.report(recording, "memory.html", compare="memory.pickle", title=name, other_title="expected")
        print(f"  the page that says where: {page}")
        print("  " + memory.text_report(recording, width=100).partition("At the peak, by line")[2].strip())
    return peak <= allowed


check(step(), "the commit before")
check(step(), "this commit")
if check(step(waste=True), "a commit that wastes"):
    raise SystemExit("the waste was not seen")
