"""``tileproof solve``: one case, all branches."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from .options import (
    DEFAULT_ENVIRONMENT,
    DEFAULT_HARDWARE,
    DEFAULT_RULES,
    DEFAULT_TIME_LIMIT,
    Environment,
    Hardware,
    Rules,
    TimeLimit,
    seconds_of,
)
from .progress import Progress
from .shell import ExitCode

if TYPE_CHECKING:
    from ...models.case import BmmCase
    from ...models.plan import BranchName
    from ..result import BranchResult, CaseResult

_EXIT_CODES = {"proven": ExitCode.SOLVED, "infeasible": ExitCode.INFEASIBLE, "open": ExitCode.OPEN}


def solve(
    m: Annotated[str, typer.Option("-m", metavar="N", help="Rows of A and C, elements.")],
    n: Annotated[str, typer.Option("-n", metavar="N", help="Columns of B and C, elements.")],
    k: Annotated[str, typer.Option("-k", metavar="N", help="Summed extent, elements.")],
    b: Annotated[str | None, typer.Option("-b", metavar="DIMS", help="Batch of A and B: 8 or 6x4; default 1.")] = None,
    batch_a: Annotated[str | None, typer.Option(metavar="DIMS", help="Batch dims of A: 6,1 or 6x1.")] = None,
    batch_b: Annotated[str | None, typer.Option(metavar="DIMS", help="Batch dims of B: 1,6 or 1x6.")] = None,
    dtype: Annotated[
        str,
        typer.Option(metavar="T", help="Type of A and B: fp16, bf16, fp32, hf32, int8, fp8_e4m3, fp8_e5m2 or hif8."),
    ] = "fp16",
    out_dtype: Annotated[
        str | None,
        typer.Option(metavar="T", help="Type of C: fp16, bf16, fp32, int8, int32; default by --dtype."),
    ] = None,
    trans_a: Annotated[bool, typer.Option("--trans-a", help="A is stored transposed, k x m.")] = False,
    trans_b: Annotated[bool, typer.Option("--trans-b", help="B is stored transposed, n x k.")] = False,
    bias: Annotated[
        str | None,
        typer.Option(metavar="T", help="Type of a bias row: fp16, bf16, fp32 or int32; default no bias."),
    ] = None,
    bias_batch: Annotated[bool, typer.Option("--bias-batch", help="The bias has the batch dims of C.")] = False,
    format_b: Annotated[str, typer.Option(metavar="FORMAT", help="Storage of B: ND or NZ (fractals).")] = "ND",
    hardware: Hardware = DEFAULT_HARDWARE,
    branch: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Branch to consider, may be repeated: special, to_matmul, iter_batch, merge_batch, asw_basic, "
            "stream_k; default all.",
        ),
    ] = None,
    rules: Rules = DEFAULT_RULES,
    environment: Environment = DEFAULT_ENVIRONMENT,
    time_limit: TimeLimit = DEFAULT_TIME_LIMIT,
    winner_only: Annotated[
        bool, typer.Option("--winner-only", help="Print the winner alone; other branches stop once they cannot win.")
    ] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Confirm each verdict by enumeration, which may take long.")
    ] = False,
    dump_model: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write the CP-SAT models as text files into DIR.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead of tables.")] = False,
) -> None:
    """Best tiling of one case in every branch, with its proof.

    Example: tileproof solve -b 8 -m 256 -n 512 -k 1024 --dtype fp16
    """
    case = _case(
        {
            "batch_a": batch_a,
            "batch_b": batch_b,
            "m": m,
            "n": n,
            "k": k,
            "dtype": dtype,
            "out_dtype": out_dtype,
            "bias": bias,
            "format_b": format_b,
        },
        b,
        {"trans_a": trans_a, "trans_b": trans_b, "bias_batch": bias_batch},
    )
    result = _solve(
        case,
        _branches(branch),
        seconds_of(time_limit),
        None if dump_model is None else _made_folder(dump_model),
        all_branches=not winner_only,
        hardware=hardware,
        rules=rules,
        environment=environment,
    )
    if as_json:
        print(json.dumps(result.to_json(), indent=2))
    else:
        from .render import show_result

        show_result(result, winner_only=winner_only)
    code = _EXIT_CODES[result.verdict]
    if verify and not _verified(result, hardware, to_stderr=as_json):
        code = ExitCode.INFEASIBLE
    raise typer.Exit(code)


def _case(texts: dict[str, str | None], b: str | None, flags: dict[str, bool]) -> BmmCase:
    """The case of the options.

    Raises:
        InputError: an option cannot be used.
    """
    from ...hardware.errors import InputError
    from ...models.case import make_case
    from ..cells import case_fields

    if b is not None:
        if texts["batch_a"] is not None or texts["batch_b"] is not None:
            raise InputError("-b and --batch-a/--batch-b exclude one another; give -b when A and B have the same batch")
        texts |= {"batch_a": b, "batch_b": b}
    try:
        return make_case(**case_fields(texts), **flags)
    except InputError as error:
        message = f"{error.column}: {error.message}" if error.column else error.message
        if b is not None and message.startswith("batch_a: "):
            message = f"-b: {message.removeprefix('batch_a: ')}"
        raise InputError(message) from None


def _branches(names: list[str] | None) -> tuple[BranchName, ...]:
    """Branches by name.

    Raises:
        InputError: a name is not known.
    """
    from ...hardware.errors import InputError
    from ...models.plan import BRANCHES
    from ..cells import did_you_mean

    chosen = [name.strip().lower().replace("-", "_") for name in names or BRANCHES]
    for name in chosen:
        if name not in BRANCHES:
            raise InputError(
                f"--branch: {name!r} is not known{did_you_mean(name, BRANCHES)}; allowed: {', '.join(BRANCHES)}"
            )
    return tuple(cast("BranchName", name) for name in chosen)


def _made_folder(path: Path) -> Path:
    """The folder, made when it is not there.

    Raises:
        InputError: it cannot be made.
    """
    from ...hardware.errors import InputError

    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--dump-model: folder {path} cannot be made: {error.strerror}") from None
    return path


def _solve(
    case: BmmCase,
    branches: tuple[BranchName, ...],
    time_limit: float,
    dump_model: Path | None,
    **settings: Any,
) -> CaseResult:
    from ..api import make_context
    from ..api import solve as solve_case

    make_context(case, settings["hardware"], settings["rules"], settings["environment"])  # before OR-Tools is loaded
    from ..branch import SolveOptions

    with Progress("branches", len(branches)) as progress:
        solved: list[str] = []

        def on_branch(name: BranchName, result: BranchResult) -> None:
            solved.append(name)
            progress.update(len(solved), f"{name} {result.status}")

        options = SolveOptions(time_limit=time_limit, dump_models=dump_model)
        return solve_case(case, branches=branches, options=options, on_branch=on_branch, **settings)


def _verified(result: CaseResult, hardware: str, *, to_stderr: bool) -> bool:
    """Confirm the verdicts by enumeration and print the outcome of each."""
    from ..verify import verify_result

    with Progress("branches verified", len(result.branches)) as progress:
        lines = verify_result(result, hardware=hardware, progress=lambda text: progress.update(0, text))
    for line in lines:
        mark = "ok" if line.ok else "FAILED"
        print(f"verify {line.branch}: {mark}: {line.text}", file=sys.stderr if to_stderr else sys.stdout)
    return all(line.ok for line in lines)
