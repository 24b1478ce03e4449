"""The program `rushlight`: it stands beside the package, so that Ctrl-C while that loads is a line and no traceback."""

import signal
import sys


def main() -> int:
    """Run the command line; its exit status."""
    try:
        from rushlight.cli import main as run

        return run()
    except KeyboardInterrupt:
        print("rushlight: interrupted while it started; nothing was run", file=sys.stderr)
        return 128 + signal.SIGINT
