"""Options of commands: made from the fields of `TaskConfig` with the help that stands there, or written here once."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import Field, fields
from pathlib import Path
from typing import Annotated, Any

import typer

from swapcal.errors import InvalidInput
from swapcal.properties import names
from swapcal.tasks.config import TaskConfig, parse_columns, read_toml

File = Annotated[str, typer.Argument(help="CSV, Parquet or JSON lines; - for standard input.")]
ConfigFile = Annotated[
    Path | None, typer.Option("--config", help="TOML file with options by name (y = 'late'); those given here win.")
]
FailAbove = Annotated[
    str | None,
    typer.Option(
        help="Exit with 1 if a group is off beyond doubt by more than this: points of probability or coverage, else "
        "units of the outcome. groups:N counts groups off; rms:X takes the root mean square bias of all cells."
    ),
]
Page = Annotated[Path | None, typer.Option(help="Also write the page to this HTML file.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]

_FIELDS = {each.name: each for each in fields(TaskConfig)}
_KINDS = {"int | None": int, "float | None": float, "int": int, "float": float, "bool": bool, "bool | None": bool}


def configured(chosen_names: str, **helps: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Let a command take fields of `TaskConfig` as options, in the place of its parameter `options`.

    Parameters
    ----------
    chosen_names : str
        The fields, between blanks, in the order of the help.
    **helps : str
        Other helps than those of the fields.

    Returns
    -------
    callable
        A decorator. The command gets the options that were given, by name, as its argument `options`.
    """
    chosen = [_FIELDS[name] for name in chosen_names.split()]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = list(inspect.signature(command).parameters.values())
        at = next(k for k, each in enumerate(own) if each.name == "options")
        made = [_parameter(each, helps.get(each.name)) for each in chosen]

        def called(**values: Any) -> None:
            given = {each.name: values.pop(each.name) for each in chosen}
            command(**values, options={name: value for name, value in given.items() if value is not None})

        called.__doc__, called.__name__ = command.__doc__, command.__name__
        parameters = [*own[:at], *made, *own[at + 1 :]]
        keyword = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters]
        called.__signature__ = inspect.Signature(keyword)  # type: ignore[attr-defined]
        called.__annotations__ = {each.name: each.annotation for each in keyword}
        return called

    return decorate


def _parameter(field: "Field[Any]", help: str | None) -> inspect.Parameter:
    """An option that is None where it was not given, so that a file of options can say it."""
    more = dict(field.metadata)
    usual = field.default
    shown = usual if isinstance(usual, (int, float, str)) and not isinstance(usual, bool) else False
    kind: Any = _KINDS.get(str(getattr(field.type, "__name__", field.type)), _KINDS.get(str(field.type), str))
    flags = more.pop("flags", (f"--{field.name}",))
    usual_help = more.pop("help")
    text = help or (f"{names()}." if field.name == "property" else usual_help)
    option = typer.Option(*flags, help=text, show_default=str(shown) if shown is not False else False, **more)
    return inspect.Parameter(
        field.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind | None, option]
    )


def task_config(file: Path | None, options: Mapping[str, Any], **more: Any) -> TaskConfig:
    """What is asked: by the file, and by the options that were given, which go before it."""
    return TaskConfig.from_mapping({**read_toml(file), **options, **more})


def models(file: Path | None, options: Mapping[str, Any]) -> tuple[str, ...]:
    """The columns of forecasts that are audited, one or several."""
    named = {**read_toml(file), **options}
    p = named.get("p", named.get("hint"))
    if not p:
        raise InvalidInput("an audit needs the column of forecasts: give p= (--p)")
    return parse_columns(p) if isinstance(p, str) else tuple(p)
