"""Groups of options as one parameter of a command.

typer makes the options of a command from its signature. A command that takes a dataclass of options gets the fields of
the dataclass as parameters in its place, each with its annotation and default::

    @with_option_groups
    def solve(given: CaseOptions, how: SearchOptions, gap: Annotated[bool, ...] = False) -> None: ...
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from inspect import Parameter, signature
from typing import Any, get_type_hints

__all__ = ["with_option_groups"]


def with_option_groups(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the fields of its option groups (dataclasses) as parameters of its own."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, type[Any]] = {}
    parameters: list[Parameter] = []
    for name, parameter in signature(command).parameters.items():
        hint = hints[name]
        if is_dataclass(hint) and isinstance(hint, type):
            groups[name] = hint
            parameters += _parameters_of(hint)
        else:
            # Keyword-only, so that an option without default may follow one that has it.
            parameters.append(parameter.replace(annotation=hint, kind=Parameter.KEYWORD_ONLY))

    @wraps(command)
    def run(**options: Any) -> None:
        built = {
            name: group(**{field.name: options.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        command(**built, **options)

    # What typer looks at: the parameters and their annotations.
    vars(run)["__signature__"] = signature(command).replace(parameters=parameters)
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _parameters_of(group: type[Any]) -> list[Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        Parameter(
            field.name,
            Parameter.KEYWORD_ONLY,
            default=Parameter.empty if field.default is MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in fields(group)
    ]
