"""A misspelt word of the command line is answered with the one that was meant."""

import pytest

from rushlight.cli import main


@pytest.mark.parametrize(
    "words, meant",
    [
        ("rn train.py", "did you mean run?"),
        ("run --memory-buget 2GiB train.py", "did you mean --memory-budget?"),
        ("memory reprot train.py", "did you mean report?"),
        ("memory show --widht=3 a.pickle", "did you mean --width?"),
        ("completion bsh", "did you mean bash?"),
        ("doctor --zzz", "--zzz"),
    ],
)
def test_the_word_that_was_meant(words: str, meant: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(words.split())
    assert stop.value.code == 2 and capsys.readouterr().err.rstrip().endswith(meant)


@pytest.mark.parametrize(
    "words",
    [
        "run -n 0 train.py",
        "memory report --max-entries 0 train.py",
        "memory report --max-entries=-5 train.py",
        "memory watch --max-entries 0 train.py",
        "memory show --width 0 s.pickle",
        "memory frontier --steps 0 train.py",
        "estimate resnet18 1x3x32x32 --processes 0",
    ],
)
def test_numbers_of_things_begin_with_one(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(words.split())
    assert stop.value.code == 2 and "expected a number from 1, got" in capsys.readouterr().err


def test_a_curve_is_offered_no_choice_of_its_points(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["memory", "frontier", "--help"])
    assert "--slowdown TIMES" not in capsys.readouterr().out
