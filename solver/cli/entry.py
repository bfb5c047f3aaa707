"""Entry point of the installed command: an interruption while the command loads ends as any other does."""

import sys


def main() -> None:
    """Load the command and run it."""
    try:
        from .main import main as run
    except KeyboardInterrupt:
        print("error: interrupted", file=sys.stderr)
        sys.exit(130)
    run()
