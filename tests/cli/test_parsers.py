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
