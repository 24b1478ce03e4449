"""A budget for a script that somebody else wrote: it imports torch, knows nothing of budgets, and is not changed."""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

size = int(sys.argv[1]) if len(sys.argv) > 1 else 512
SCRIPT = f"""
import torch
from torch import nn

torch.manual_seed(0)
layers = [layer for _ in range(6) for layer in (nn.Linear({size}, {size}), nn.Tanh())]
model = nn.Sequential(*layers)
optimizer = torch.optim.Adam(model.parameters())
for step in range(3):
    optimizer.zero_grad()
    loss = model(torch.randn({2 * size}, {size})).square().mean()
    loss.backward()
    optimizer.step()
    print(f"step {{step}}: loss {{loss.item():.6f}}")
"""


def run(*words: str) -> tuple[str, str]:
    """What a command of rushlight prints, and what it says of itself."""
    command = [sys.executable, "-m", "rushlight", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout, done.stderr


with tempfile.TemporaryDirectory() as folder:
    script = Path(folder, "train.py")
    script.write_text(SCRIPT)
    printed, told = run("run", "--memory-budget", "10GB", str(script))
    needs = float(re.search(r"peak, measured +([\d.]+) MB", told)[1])
    print(f"$ rushlight run train.py                      # needs {needs} MB\n{printed}")
    half = f"{needs / 2:.0f}MB"
    bounded, told = run("run", "--memory-budget", half, "--spill", folder, str(script))
    print(f"$ rushlight run --memory-budget {half} train.py\n{bounded}{told}")
    print("the same output:", printed == bounded)
