"""Tables of the benchmarks, for a terminal or as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table


def show(title: str, header: Sequence[str], rows: Sequence[Sequence[str]], *, markdown: bool) -> None:
    """Print a table."""
    if markdown:
        print(f"{title}\n")
        print("| " + " | ".join(header) + " |")
        print("|---" + "|---:" * (len(header) - 1) + "|")
        for row in rows:
            print("| " + " | ".join(row) + " |")
        return
    table = Table(title=title)
    for position, name in enumerate(header):
        table.add_column(name, justify="right" if position else "left")
    for row in rows:
        table.add_row(*row)
    Console(width=170).print(table)
