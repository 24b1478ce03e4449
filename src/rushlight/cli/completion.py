"""``rushlight completion``: what a shell needs to complete this program's commands and options."""

from __future__ import annotations

import contextlib
import importlib
import io
import re
from collections.abc import Sequence

from rushlight.cli.parsers import Parser

__all__ = ["main"]

EPILOG = """examples:
  eval "$(rushlight completion bash)"                     in ~/.bashrc
  eval "$(rushlight completion zsh)"                      in ~/.zshrc, after compinit
  rushlight completion fish > ~/.config/fish/completions/rushlight.fish
"""

BASH = """_rushlight() {{
    local current=${{COMP_WORDS[COMP_CWORD]}} words
    case "${{COMP_WORDS[*]:1:COMP_CWORD-1}}" in
{cases}
        *) words="{commands}" ;;
    esac
    if [[ $COMP_CWORD -eq 1 || $current == -* ]]; then
        COMPREPLY=($(compgen -W "$words" -- "$current"))
    else
        COMPREPLY=($(compgen -W "$words" -- "$current") $(compgen -f -- "$current"))
    fi
}}
complete -o filenames -F _rushlight rushlight
"""


def main(argv: Sequence[str]) -> int:
    """Print the completion of a shell."""
    parser = Parser(
        prog="rushlight completion",
        description="Print what a shell needs to complete commands and options.",
        epilog=EPILOG,
    )
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="which shell")
    shell = parser.parse_args(list(argv)).shell
    found = options_of_commands()
    if shell == "fish":
        print("\n".join(fish(found)))
        return 0
    cases = "\n".join(
        f'        "{command}"*) words="{" ".join(words)}" ;;' for command, words in sorted(found.items(), reverse=True)
    )
    if shell == "zsh":
        print("autoload -Uz bashcompinit && bashcompinit")
    print(BASH.format(cases=cases, commands=" ".join(top(found))), end="")
    return 0


def top(found: dict[str, list[str]]) -> list[str]:
    """The commands."""
    return sorted({command.split()[0] for command in found})


def options_of_commands() -> dict[str, list[str]]:
    """Options and subcommands of every command, as their help lists them."""
    from rushlight import cli

    found = {}
    for name in cli.COMMANDS:
        text = help_of([name])
        inner = re.findall(r"^ {4}(\w+) {2,}", text, re.M) if "commands:" in text else []
        found[name] = [*inner, *options_in(text)]
        for command in inner:
            found[f"{name} {command}"] = options_in(help_of([name, command]))
    return found


def help_of(words: list[str]) -> str:
    """What a command prints for --help."""
    module = importlib.import_module(f"rushlight.cli.{words[0].replace('-', '_')}")
    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.suppress(SystemExit):
        module.main([*words[1:], "--help"])
    return text.getvalue()


def options_in(text: str) -> list[str]:
    """The options that a help text explains."""
    lines = re.findall(r"^ {2}(-.*)", text, re.M)
    return sorted({option for line in lines for option in re.findall(r"(?:^|, )(--?[\w-]+)", line)})


def fish(found: dict[str, list[str]]) -> list[str]:
    """Lines of fish."""
    lines = [f"complete -c rushlight -n __fish_use_subcommand -f -a '{' '.join(top(found))}'"]
    for command, words in found.items():
        seen = " ".join(f"__fish_seen_subcommand_from {part};" for part in command.split()).replace("; __", "; and __")
        for word in words:
            form = f"-l {word[2:]}" if word[:2] == "--" else f"-s {word[1:]}" if word[0] == "-" else f"-f -a {word}"
            lines.append(f"complete -c rushlight -n '{seen.rstrip(';')}' {form}")
    return lines
