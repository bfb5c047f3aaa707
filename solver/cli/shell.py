"""How the command ends: exit codes, one sentence for each error, Ctrl-C and closed pipes."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from enum import IntEnum
from typing import Any, Final

import typer
from typer.core import TyperGroup

#: Set to anything to see the traceback of an unexpected error.
TRACEBACK_VARIABLE: Final = "TILEPROOF_TRACEBACK"
_sentences: list[Callable[[], str]] = []
#: Seconds for an orderly end after Ctrl-C; OR-Tools, inside a run, would not notice it.
_GRACE: Final = 1.0


class ExitCode(IntEnum):
    """Exit codes of the command (design section 9; 128 and up as shells count)."""

    SOLVED = 0
    BAD_INPUT = 2
    INFEASIBLE = 3
    OPEN = 4
    INTERNAL = 70
    INTERRUPTED = 130
    BROKEN_PIPE = 141


class Shell(TyperGroup):
    """The command group that turns every error into a sentence and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command; its errors end the process."""
        try:
            return super().invoke(ctx)
        except BaseException as error:
            code = report(error)
            if code is None:
                raise
            raise SystemExit(code) from None

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Parse, run and exit."""
        kwargs["standalone_mode"] = False
        try:
            code = super().main(*args, **kwargs)
        except SystemExit as end:
            code = end.code
        except BaseException as error:
            code = report(error)
            if code is None:
                raise
        try:
            sys.stdout.flush()
        except OSError as error:
            code = report(error)
        sys.exit(code or ExitCode.SOLVED)


def say_error(sentence: str) -> None:
    """One line ``error: ...`` on stderr."""
    with contextlib.suppress(OSError):
        print(f"error: {' '.join(sentence.split())}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def last_words(sentence: Callable[[], str]) -> Iterator[None]:
    """What to say when the command is interrupted inside this block, instead of ``interrupted``."""
    _sentences[:] = [sentence]
    try:
        yield
    except KeyboardInterrupt:
        said = sentence()
        _sentences[:] = [lambda: said]  # until it is reported
        raise
    except BaseException:
        _sentences.clear()
        raise
    _sentences.clear()


def _last_words() -> str:
    return _sentences[-1]() if _sentences else "interrupted"


def report(error: BaseException) -> ExitCode | None:
    """Tell the user what is wrong, in one sentence; the exit code, or ``None`` when the exception is none of ours."""
    if isinstance(error, typer.Exit | SystemExit | GeneratorExit):
        return None
    if isinstance(error, KeyboardInterrupt | typer.Abort):
        say_error(_last_words())
        _sentences.clear()
        return ExitCode.INTERRUPTED
    if isinstance(error, BrokenPipeError):
        _drop_stdout()
        return ExitCode.BROKEN_PIPE
    if type(error).__name__ == "NoArgsIsHelpError" and hasattr(error, "show"):
        error.show()
        return ExitCode.BAD_INPUT
    if hasattr(error, "format_message"):  # usage errors of typer, whichever click it is built on
        say_error(error.format_message())
        return ExitCode.BAD_INPUT
    return _report_own(error)


def _report_own(error: BaseException) -> ExitCode:
    from ...hardware.errors import InputError

    if os.environ.get(TRACEBACK_VARIABLE):
        traceback.print_exception(error)
    if isinstance(error, InputError):
        say_error(str(error))
        return ExitCode.BAD_INPUT
    if isinstance(error, OSError):
        name = f"{os.fsdecode(error.filename)}: " if error.filename is not None else "output: "
        say_error(f"{name}{error.strerror or error}")
        if error.filename is None:
            _drop_stdout()
        return ExitCode.BAD_INPUT
    text = str(error)
    if not text.startswith("internal error"):
        text = f"internal error: {type(error).__name__}: {text} ({TRACEBACK_VARIABLE}=1 shows where)"
    say_error(text)
    return ExitCode.INTERNAL


def _drop_stdout() -> None:
    """Send what is left of stdout nowhere, so that closing it at exit says nothing."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def watch_interrupts() -> None:
    """End the process on Ctrl-C even while OR-Tools is inside a run and Python cannot handle the signal."""
    if os.name != "posix":
        return
    read, write = os.pipe()
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    threading.Thread(target=_end_on_interrupt, args=(read,), name="interrupts", daemon=True).start()


def _end_on_interrupt(read: int) -> None:
    while os.read(read, 1) != bytes([signal.SIGINT]):
        pass
    time.sleep(_GRACE)
    if sys.stderr.isatty():
        os.write(2, b"\x1b[?25h\n")  # a progress bar hides the cursor
    os.write(2, f"error: {_last_words()}\n".encode(errors="backslashreplace"))
    os._exit(ExitCode.INTERRUPTED)
