"""``tileproof solve``: one case, all branches."""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from ..options import (
    DEFAULT_ENVIRONMENT,
    DEFAULT_HARDWARE,
    DEFAULT_RULES,
    DEFAULT_TIME_LIMIT,
    AsJson,
    Batch,
    BatchA,
    BatchB,
    Bias,
    BiasBatch,
    Branches,
    Columns,
    Depth,
    Environment,
    FormatB,
    Hardware,
    InputType,
    Library,
    OutputType,
    Pins,
    Rows,
    Rules,
    TimeLimit,
    TransposedA,
    TransposedB,
    branches_of,
    case_of,
    pins_of,
    seconds_of,
)
from ..progress import Progress
from ..shell import ExitCode

if TYPE_CHECKING:
    from ....models.case import BmmCase
    from ....models.plan import BranchName
    from ...library import PlanLibrary
    from ...result import BranchResult, CaseResult
    from ...review.gap import Gap
    from ...search.solve_branch import SolveOptions

_EXIT_CODES = {"proven": ExitCode.SOLVED, "infeasible": ExitCode.INFEASIBLE, "open": ExitCode.OPEN}


def solve(
    m: Rows,
    n: Columns,
    k: Depth,
    b: Batch = None,
    batch_a: BatchA = None,
    batch_b: BatchB = None,
    dtype: InputType = "fp16",
    out_dtype: OutputType = None,
    trans_a: TransposedA = False,
    trans_b: TransposedB = False,
    bias: Bias = None,
    bias_batch: BiasBatch = False,
    format_b: FormatB = "ND",
    hardware: Hardware = DEFAULT_HARDWARE,
    branch: Branches = None,
    rules: Rules = DEFAULT_RULES,
    environment: Environment = DEFAULT_ENVIRONMENT,
    pin: Pins = None,
    time_limit: TimeLimit = DEFAULT_TIME_LIMIT,
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
    texts = {
        "batch_a": batch_a, "batch_b": batch_b, "m": m, "n": n, "k": k, "dtype": dtype, "out_dtype": out_dtype,
        "bias": bias, "format_b": format_b,
    }  # fmt: skip
    case = case_of(texts, b, {"trans_a": trans_a, "trans_b": trans_b, "bias_batch": bias_batch})
    branches, pins, seconds = branches_of(branch), pins_of(pin), seconds_of(time_limit)
    settings = {"hardware": hardware, "rules": rules, "environment": environment}
    from ...api import make_context

    make_context(case, **settings)  # type: ignore[arg-type]  # before OR-Tools is loaded
    if certificate is not None:
        from ...tables.files import check_targets

        check_targets([certificate])
    folder = None if dump_model is None else _made_folder(dump_model)
    from ...search.solve_branch import SolveOptions

    options = SolveOptions(time_limit=seconds, dump_models=folder, pins=pins)
    with ExitStack() as stack:
        shelf = None if library is None else stack.enter_context(_opened(library))
        result = _solve(case, branches, options, all_branches=not winner_only, library=shelf, **settings)
    if certificate is not None:
        _write_certificate(certificate, result, hardware)
    ladder = _ladder(result, hardware, options) if gap else None
    choice = None
    if robust:
        from ..robust_view import robust_choice, show_robust

        choice = robust_choice(case, branches, options, intervals, **settings)
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
        _verify(result, hardware, options, to_stderr=as_json)
    raise typer.Exit(_EXIT_CODES[result.verdict])


def _opened(path: Path) -> PlanLibrary:
    from ...library import PlanLibrary

    return PlanLibrary(path)


def _ladder(result: CaseResult, hardware: str, options: SolveOptions) -> Gap | None:
    from ....hardware import get_spec
    from ...review.gap import gap_of_result

    return gap_of_result(result, get_spec(hardware), options)


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


def _solve(case: BmmCase, branches: tuple[BranchName, ...], options: SolveOptions, **settings: Any) -> CaseResult:
    from ...api import solve as solve_case

    with Progress("branches", len(branches)) as progress:
        solved: list[str] = []

        def on_branch(name: BranchName, result: BranchResult) -> None:
            solved.append(name)
            progress.update(len(solved), f"{name} {result.status}")

        return solve_case(case, branches=branches, options=options, on_branch=on_branch, **settings)


def _write_certificate(path: Path, result: CaseResult, hardware: str) -> None:
    from ....hardware import get_spec
    from ...proof.certificate import make_certificate
    from ...tables.files import write_files

    data = make_certificate(result, get_spec(hardware))

    def write(stream: IO[str]) -> None:
        json.dump(data, stream, indent=1, sort_keys=True)
        stream.write("\n")

    write_files({path: write})


def _verify(result: CaseResult, hardware: str, options: SolveOptions, *, to_stderr: bool) -> None:
    """Confirm the verdicts by enumeration and print the outcome of each.

    Raises:
        InternalError: the enumerator does not confirm what the solver said.
    """
    from ...proof.verify import verify_result

    with Progress("branches verified", len(result.branches)) as progress:
        lines = verify_result(result, hardware=hardware, progress=lambda text: progress.update(0, text))
    for line in lines:
        mark = "ok" if line.ok else "FAILED"
        print(f"verify {line.where}: {mark}: {line.text}", file=sys.stderr if to_stderr else sys.stdout)
    for name, line in zip(result.branches, lines, strict=False):
        if not line.ok:
            raise _disagreement(result, hardware, options, name, line.text)


def _disagreement(result: CaseResult, hardware: str, options: SolveOptions, branch: BranchName, text: str) -> Exception:
    """The error of a verdict that the enumerator does not confirm, with its evidence on disk."""
    from dataclasses import replace

    from ....hardware.errors import InternalError
    from ...api import make_context
    from ...cpsat.evidence import model_text, write_evidence
    from ...search.solve_branch import solve_branch

    ctx = make_context(result.case, hardware, result.rules, result.environment)
    again = replace(options, tie_break=False, explain=False, dump_models=options.dump_models or Path())
    models = solve_branch(ctx, branch, again).models
    error = InternalError(
        f"{branch}: the enumerator does not confirm the solver: {text}",
        model=model_text(models[-1]) if models else None,
    )
    write_evidence(error, ctx, branch, options.pins, options.dump_models)
    return error
