"""The program `rushlight`: it stands beside the package, so that Ctrl-C while that loads is a line and no traceback."""

import os
import sys

INTERRUPTED = 130


def pyinstaller_hooks() -> list[str]:
    """The folder in which PyInstaller finds what belongs to a program that uses rushlight."""
    return [os.path.join(os.path.dirname(__file__), "rushlight", "compat", "pyinstaller")]


def main() -> int:
    """Run the command line; its exit status."""
    try:
        import signal  # here: what is imported above could be interrupted where nobody catches it

        from rushlight.cli import main as run

        status = run()
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is done: there is nothing to interrupt but Python's own end
        return status
    except KeyboardInterrupt:
        print("rushlight: interrupted while it started; nothing was run", file=sys.stderr)
        return INTERRUPTED
