"""``tileproof solve``: one case, all branches."""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from ..option_groups import with_option_groups
from ..options import AsJson, CaseOptions, Library, SearchOptions
from ..progress import Progress, solve_shown
from ..shell import ExitCode

if TYPE_CHECKING:
    from ....models.context import Context
    from ....models.plan import BranchName
    from ...library import PlanLibrary
    from ...result import CaseResult
    from ...review.gap import Gap
    from ...search.solve_branch import SolveOptions

_EXIT_CODES = {"proven": ExitCode.SOLVED, "infeasible": ExitCode.INFEASIBLE, "open": ExitCode.OPEN}


@with_option_groups
def solve(
    given: CaseOptions,
    how: SearchOptions,
    winner_only: Annotated[
        bool, typer.Option("--winner-only", help="Print the winner alone; other branches stop once they cannot win.")
    ] = False,
    gap: Annotated[
        bool, typer.Option("--gap", help="Add the ladder from the winner to the roofline and the least traffic.")
    ] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Confirm each verdict by enumeration, which may take long.")
    ] = False,
    robust: Annotated[
        bool,
        typer.Option("--robust", help="Add the plan of least worst regret when constants are uncertain (--intervals)."),
    ] = False,
    intervals: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Intervals for --robust (`tileproof calibrate --json`); default by the confidence marks of the chip.",
        ),
    ] = None,
    certificate: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write what was proven as JSON, for `tileproof verify`."),
    ] = None,
    library: Library = None,
    dump_model: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write the CP-SAT models as text files into DIR.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Best tiling of one case in every branch, with its proof.

    Example: tileproof solve -b 8 -m 256 -n 512 -k 1024 --dtype fp16 --pin base_m=128
    """
    case = given.case()
    branches, pins, seconds = how.read()
    ctx = how.context(case)  # before OR-Tools is loaded
    if certificate is not None:
        from ...tables.files import check_targets

        check_targets([certificate])
    folder = None if dump_model is None else _made_folder(dump_model)
    from ...search.solve_branch import SolveOptions

    options = SolveOptions(time_limit=seconds, dump_models=folder, pins=pins)
    with ExitStack() as stack:
        shelf = None if library is None else stack.enter_context(_opened(library))
        result = solve_shown(ctx, branches, options, all_branches=not winner_only, library=shelf)
    if certificate is not None:
        _write_certificate(certificate, result, ctx)
    ladder = _ladder(result, ctx, options) if gap else None
    choice = None
    if robust:
        from ..robust_view import robust_choice, show_robust

        choice = robust_choice(ctx, branches, options, intervals)
    if as_json:
        extra = {"gap": ladder.to_json() if ladder is not None else None} if gap else {}
        extra |= {"robust": choice.to_json() if choice is not None else None} if robust else {}
        print(json.dumps(result.to_json() | extra, indent=2))
    else:
        from ..render import show_result

        show_result(result, winner_only=winner_only)
        if ladder is not None:
            from ..gap_table import show_gap

            show_gap(ladder)
        if robust:
            show_robust(choice)
    if verify:
        _verify(result, ctx, options, to_stderr=as_json)
    raise typer.Exit(_EXIT_CODES[result.verdict])


def _opened(path: Path) -> PlanLibrary:
    from ...library import PlanLibrary

    return PlanLibrary(path)


def _ladder(result: CaseResult, ctx: Context, options: SolveOptions) -> Gap | None:
    from ...review.gap import gap_of_result

    return gap_of_result(result, ctx.spec, options)


def _made_folder(path: Path) -> Path:
    """The folder, made when it is not there.

    Raises:
        InputError: it cannot be made.
    """
    from ....hardware.errors import InputError

    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--dump-model: folder {path} cannot be made: {error.strerror}") from None
    return path


def _write_certificate(path: Path, result: CaseResult, ctx: Context) -> None:
    from ...proof.certificate import make_certificate
    from ...tables.files import write_files

    data = make_certificate(result, ctx.spec)

    def write(stream: IO[str]) -> None:
        json.dump(data, stream, indent=1, sort_keys=True)
        stream.write("\n")

    write_files({path: write})


def _verify(result: CaseResult, ctx: Context, options: SolveOptions, *, to_stderr: bool) -> None:
    """Confirm the verdicts by enumeration and print the outcome of each.

    Raises:
        InternalError: the enumerator does not confirm what the solver said.
    """
    from ...proof.verify import verify_result

    with Progress("branches verified", len(result.branches)) as progress:
        lines = verify_result(result, hardware=ctx.spec, progress=lambda text: progress.update(0, text))
    for line in lines:
        mark = "ok" if line.ok else "FAILED"
        print(f"verify {line.where}: {mark}: {line.text}", file=sys.stderr if to_stderr else sys.stdout)
    for name, line in zip(result.branches, lines, strict=False):
        if not line.ok:
            raise _disagreement(ctx, options, name, line.text)


def _disagreement(ctx: Context, options: SolveOptions, branch: BranchName, text: str) -> Exception:
    """The error of a verdict that the enumerator does not confirm, with its evidence on disk."""
    from dataclasses import replace

    from ....hardware.errors import InternalError
    from ...cpsat.run import model_text
    from ...search.evidence import write_evidence
    from ...search.solve_branch import solve_branch

    again = replace(options, tie_break=False, explain=False, dump_models=options.dump_models or Path())
    models = solve_branch(ctx, branch, again).models
    error = InternalError(
        f"{branch}: the enumerator does not confirm the solver: {text}",
        model=model_text(models[-1]) if models else None,
    )
    write_evidence(error, ctx, branch, options.pins, options.dump_models)
    return error
