"""Which programs are run, how, and how far their losses may be from PyTorch's.

    python tests/programs/cases.py          # under PyTorch: writes recorded.json anew
    python tests/programs/cases.py --slow   # only what it says of the slow cases

With the same random numbers losses agree to rounding, which training magnifies: by how much is said here.  With its own
random numbers a program's last loss lies in the band of those that PyTorch reaches with other seeds.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
RECORDED = HERE / "recorded.json"
SEEDS = range(1, 9)

# What is run, one command after the other (`TMP` is an empty folder), and how far apart losses may be, beside 1 or the loss itself.
CASES = {
    "classify --epochs 2 --save TMP/a.pt; classify --epochs 3 --resume TMP/a.pt": 1e-3,
    "vae --save TMP/a.pt": 1e-4,
    "siamese --save TMP/a.pt": 1e-4,
    "forward_forward --save_model TMP/a.pt": 1e-4,
    "word_language_model --model LSTM --dropout 0 --save TMP/a.pt": 1e-3,
    "word_language_model --model GRU --dropout 0": 1e-3,
    "word_language_model --model RNN_TANH --dropout 0 --lr 1 --tied": 1e-3,
    "word_language_model --model RNN_RELU --dropout 0 --lr 1": 1e-3,
    "word_language_model --model Transformer --dropout 0 --lr 0.5": 1e-3,
    "time_series": 1e-6,
    "gcn": 1e-3,
    "gcn --csr --save TMP/a.pt": 1e-3,
    "gat": 1e-3,
    "reinforce": 1e-3,
    "actor_critic": 1e-3,
    "super_resolution": 1e-4,
    "dcgan --spectral --outf TMP": 1e-3,
    "mixture_of_experts": 1e-4,
    "mixture_of_experts --bf16": 2e-2,
    "distillation": 5e-3,
    "contrastive --save TMP/a.pt": 1e-3,
    "autoencoder --channels-last --checkpoint TMP/a.pt": 1e-3,
    "seq2seq --save TMP/a.pt": 1e-3,
    "neural_ode": 1e-3,
    "neural_ode --adjoint --double": 1e-6,
    "quantile --log TMP/log.json": 1e-3,
    "matrix_factorization --epochs 2 --save TMP/a.pt; matrix_factorization --epochs 3 --resume TMP/a.pt": 1e-3,
    "matrix_factorization --optimizer SGD": 1e-3,
    "matrix_factorization --optimizer Adagrad": 1e-3,
    "style_transfer --num-steps 8": 1e-3,
    "meta_learning": 1e-3,
}

# As these, run by `make test-all` alone.
SLOW = {
    "diffusion --save TMP/a.pt": 1e-3,
    "diffusion --no-min-snr --epochs 2": 1e-3,
    "physics_informed": 1e-6,
    "physics_informed --func --adam-steps 10": 1e-6,
    "masked_language_model --output TMP": 1e-3,
    "masked_language_model --bf16": 2e-2,
    "keyword_spotting --save TMP/a.pt": 1e-3,
    "detector --weights TMP/a.pt": 1e-3,
}

# Runs with random numbers of their own: of these the last loss is looked at.
BANDS = ["classify", "vae", "siamese", "forward_forward", "word_language_model --lr 1", "time_series", "gcn", "gat", "actor_critic",
         "super_resolution", "mixture_of_experts --checkpointing", "distillation --amp", "contrastive", "autoencoder", "seq2seq",
         "neural_ode", "quantile", "matrix_factorization", "style_transfer", "meta_learning"]  # fmt: skip


def commands(case: str, folder: str) -> list[list[str]]:
    """The programs of a case, with their arguments, `TMP` replaced by a folder."""
    found = []
    for command in case.replace("TMP", folder).split(";"):
        program, *arguments = command.split()
        found.append([f"{HERE / 'scripts' / program}.py", *arguments])
    return found


def losses(printed: str) -> list[float]:
    """The losses among what a program printed."""
    return [float(x) for x in re.findall(r"loss:?\s+(-?[\d.]+(?:e[-+]?\d+)?)", printed)]


def run_all(several: list[list[str]], own: bool = False) -> list[list[float]]:
    """Losses of each of several commands, run in one process under PyTorch."""
    given = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {"OMP_NUM_THREADS": "1"}
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(several, file)
        file.flush()
        run = subprocess.run([sys.executable, "-W", "ignore", HERE / "scripts" / "same_draws.py", file.name], text=True, stdout=subprocess.PIPE,
                             check=True, env=given | ({"OWN_DRAWS": "1"} if own else {}))  # fmt: skip
    return [losses(printed) for printed in json.loads(run.stdout.splitlines()[-1])]


def recorded_anew() -> dict[str, dict[str, list[float]]]:
    """What PyTorch reaches: losses of each case, and the last losses of runs with several seeds."""
    if sys.argv[1:] == ["--slow"]:
        recorded: dict[str, dict[str, list[float]]] = json.loads(RECORDED.read_text())
        recorded["losses"].update(losses_of_cases(SLOW))
        return recorded
    return {"losses": losses_of_cases(CASES) | losses_of_cases(SLOW), "bands": bands()}


def losses_of_cases(cases: dict[str, float]) -> dict[str, list[float]]:
    """All losses that each case prints under PyTorch."""
    with tempfile.TemporaryDirectory() as folder:
        several = [(case, command) for k, case in enumerate(cases) for command in commands(case, f"{folder}/{k}")]
        for k in range(len(cases)):
            (Path(folder) / str(k)).mkdir()
        found: dict[str, list[float]] = {case: [] for case in cases}
        for (case, _), values in zip(several, run_all([command for _, command in several]), strict=True):
            found[case] += values
    return found


def bands() -> dict[str, list[float]]:
    """The least and the largest last loss over the seeds, of each run."""
    several = [commands(f"{name} --seed {seed}", "")[0] for name in BANDS for seed in SEEDS]
    last = [values[-1] for values in run_all(several, own=True)]
    parts = [last[k : k + len(SEEDS)] for k in range(0, len(last), len(SEEDS))]
    return {name: [min(part), max(part)] for name, part in zip(BANDS, parts, strict=True)}


if __name__ == "__main__":
    RECORDED.write_text(json.dumps(recorded_anew(), indent=1) + "\n")
