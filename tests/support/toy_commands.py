"""Runs commands with the toy branch in one process: argument lists (JSON) on stdin, their answers (JSON) on stdout."""

from __future__ import annotations

import contextlib
import io
import json
import sys

from toy_branch import with_panel


def main() -> None:
    """Answer every command as (exit code, stdout, stderr)."""
    answers = []
    with with_panel():
        from tileproof.solver.cli.main import app  # after the branch is there, as columns are named by it

        for arguments in json.load(sys.stdin):
            out, err, code = io.StringIO(), io.StringIO(), 0
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                try:
                    app(arguments)
                except SystemExit as end:
                    code = int(end.code or 0)
            answers.append((code, out.getvalue(), err.getvalue()))
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main()
