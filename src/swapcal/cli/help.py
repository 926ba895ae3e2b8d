"""The help of a command: 24 lines with what matters first, and every option by groups with --help-all."""

import re
import textwrap
from typing import Any

import typer
from typer.core import TyperCommand

WIDTH = 80
# What comes first, and what goes together; whatever is in none of these is for experts.
MAIN = ("y", "p", "groups", "out", "report")
GROUPS = {
    "Late outcomes": ("time", "known", "delay", "order", "later", "outcomes", "id", "corrections"),
    "What to predict": ("property", "interval", "classes", "positive", "low", "high"),
    "Groups": ("categories", "linear", "class", "learner", "limit", "weight", "cluster", "by", "discover"),
    "Alarms": ("tolerance", "alpha", "every", "follow", "first"),
    "Output": ("verbose", "quiet", "all", "json", "fail-above", "keep", "overwrite", "against", "bad-rows"),
    "Files": ("state", "fresh", "config", "merge", "save", "processes"),
}
EXPERT = "Expert"


class TaskCommand(TyperCommand):
    """A command whose help names the properties there are, which are looked up when somebody reads it."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """As usual; with --help-all every option is told, and nothing else is done."""
        if "--help-all" in args:
            formatter = ctx.make_formatter()
            self._tell_all(ctx, formatter)
            typer.echo(formatter.getvalue().rstrip())
            ctx.exit()
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The short help: usage, a sentence, the example, five options, and the names of the others."""
        lines = [f"Usage: {ctx.command_path} [OPTIONS] {self._argument()}", ""]
        told = (self.help or "").split("\n\n")
        lines += [f"  {line}" for line in textwrap.wrap(told[0].replace("\n", " "), WIDTH - 2)]
        example = " ".join(next((each for each in told if each.startswith("Example:")), "").split())
        lines += [f"  {line}" for line in textwrap.wrap(example, WIDTH - 2, break_on_hyphens=False)]
        lines += ["", "Main options:"]
        for option in self._options(MAIN):
            sentence = (option.help or "").split(". ")[0].rstrip(".")
            lines += textwrap.wrap(f"  {_flags(option):<16}{sentence}.", WIDTH, subsequent_indent=" " * 18)
        lines.append("")
        for title, options in self._grouped().items():
            names = "  ".join(option.opts[0] for option in options)
            if title != EXPERT and names:
                lines += textwrap.wrap(f"{title}:  {names}", WIDTH, subsequent_indent="    ", break_on_hyphens=False)
        lines += ["", f"Every option, by groups: {ctx.command_path} --help-all"]
        formatter.write("\n".join(lines) + "\n")

    def _tell_all(self, ctx: Any, formatter: Any) -> None:
        """Every option, by groups."""
        from swapcal.properties import names

        formatter.write_usage(ctx.command_path, f"[OPTIONS] {self._argument()}")
        self.format_help_text(ctx, formatter)
        for title, options in {"Main options": self._options(MAIN), **self._grouped()}.items():
            rows = [option.get_help_record(ctx) or (option.opts[0], "") for option in options]
            named = [
                (row[0], f"{names()}.") if o.name == "property" else row for o, row in zip(options, rows, strict=True)
            ]
            if named:
                with formatter.section(title):
                    formatter.write_dl(
                        [(flags, re.sub(r"default: \((.*?)\)", r"default: \1", said)) for flags, said in named]
                    )

    def _argument(self) -> str:
        return " ".join(each.name.upper() for each in self.params if each.param_type_name == "argument")

    def _options(self, names: tuple[str, ...]) -> list[Any]:
        found = {_name(each): each for each in self.params if each.param_type_name == "option"}
        return [found[name] for name in names if name in found]

    def _grouped(self) -> dict[str, list[Any]]:
        """The options by groups, without the main ones."""
        placed = {name for group in GROUPS.values() for name in group} | {*MAIN, "help"}
        named = (_name(each) for each in self.params if each.param_type_name == "option")
        others = tuple(name for name in named if name not in placed)
        return {title: self._options(names) for title, names in {**GROUPS, EXPERT: others}.items()}


_TAKES = {"y": " COLUMN", "p": " COLUMN", "groups": " LIST", "out": " FILE", "report": " FILE"}


def _name(option: Any) -> str:
    """What people type, without the dashes."""
    return str(option.opts[0]).removeprefix("--")


def _flags(option: Any) -> str:
    return f"{option.opts[0]}{_TAKES.get(option.name, '')}"
