"""Every table of the README, as Markdown: ``python tests/benchmarks/readme_tables.py`` (about half an hour; ``pip install '.[bench]'``)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_COMMANDS = (
    ("solve_times.py", "--rules", "none"),
    ("solve_times.py", "--rules", "v0.4"),
    ("throughput.py", "--rules", "v0.4"),
    ("throughput.py", "--rules", "none", "--jobs", "2"),
    ("compare_solvers.py",),
)


def main() -> None:
    """Run one after the other; other work on the machine would falsify the times."""
    for name, *arguments in _COMMANDS:
        print(f"\n`{' '.join(('python', f'tests/benchmarks/{name}', *arguments))}`\n", flush=True)
        subprocess.run([sys.executable, str(Path(__file__).with_name(name)), *arguments, "--markdown"], check=False)


if __name__ == "__main__":
    main()
