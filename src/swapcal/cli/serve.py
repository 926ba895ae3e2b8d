"""`swapcal serve`: forecasts over the network, and the tokens for it."""

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from swapcal.cli.terminal import HELP, error_boundary, stop

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from swapcal.service.config import Config
    from swapcal.service.store import EventStore

serve = typer.Typer(
    help="Forecasts over the network.\n\nExample: swapcal serve --demo",
    invoke_without_command=True,
    rich_markup_mode=None,
    context_settings=HELP,
)
token = typer.Typer(help="Tokens: who may ask the service what.", no_args_is_help=True, rich_markup_mode=None)
serve.add_typer(token, name="token")

CONFIG = Path("swapcal.toml")
NEEDED = ("starlette", "uvicorn", "msgspec", "httpx", "prometheus_client")
_Config = Annotated[Path, typer.Option(help="The configuration, a TOML file.")]


@serve.callback()
def start(
    context: typer.Context,
    config: _Config = CONFIG,
    demo: Annotated[bool, typer.Option("--demo", help="Replay the flights of 2013; needs no configuration.")] = False,
    host: Annotated[str | None, typer.Option(help="Listen here, whatever the configuration says.")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65_535, help="And at this port; 0 for any.")] = None,
    rate: Annotated[int, typer.Option(min=1, help="With --demo: flights a second.")] = 300,
) -> None:
    """Serve forecasts: one store, any number of streams.

    What was stored is there again after a crash. Stop it with Ctrl-C or SIGTERM; it finishes what it has taken.

    Exit codes: 0 stopped in good order, 2 bad input, 3 it could not start.

    Example: swapcal serve --config swapcal.toml
    """
    if context.invoked_subcommand is not None:
        return
    _check_installed()
    with error_boundary():
        import msgspec

        from swapcal.service import app as serving
        from swapcal.service import config as configs

        if demo:
            _demo(port, rate)
        settings = _read(config)
        changed = {name: value for name, value in (("host", host), ("port", port)) if value is not None}
        if changed:
            service = msgspec.structs.replace(settings.service, **changed)
            settings = configs.checked(msgspec.structs.replace(settings, service=service))
        host = settings.service.host
        code = serving.run(settings, started=lambda at: typer.echo(f"serving at http://{host}:{at}/"))
        raise typer.Exit(code)


def _demo(port: int | None, rate: int) -> None:
    import shutil

    from swapcal.demo.replay import Replay, demo_config
    from swapcal.service import app as serving
    from swapcal.service.config import Service

    settings = demo_config(Service().port if port is None else port)

    def started(at: int) -> None:
        url = f"http://127.0.0.1:{at}"
        page = f"{url}/v1/streams/arrives-late/report"
        typer.echo(f"the flights of 2013 are being replayed: open {page} ; Ctrl-C ends it")
        Replay(url, rate, say=typer.echo).start()

    try:
        code = serving.run(settings, started=started)
    finally:
        shutil.rmtree(Path(settings.service.store).parent, ignore_errors=True)
    raise typer.Exit(code)


@token.command("create")
def create(
    scope: Annotated[list[str], typer.Option(help="predict, outcomes, read or admin; once for each.")],
    config: _Config = CONFIG,
    name: Annotated[str, typer.Option(help="Whose it is, for the list of tokens.")] = "",
    stream: Annotated[list[str] | None, typer.Option(help="Good for this stream; once for each.")] = None,
    all_streams: Annotated[bool, typer.Option("--all-streams", help="Good for all streams, also later ones.")] = False,
    print_only: Annotated[
        bool, typer.Option("--print-only", help="Store nothing; print an entry for the configuration as well.")
    ] = False,
) -> None:
    """Make a token and print it: it is shown this once, and only a digest of it is kept.

    Example: swapcal serve token create --scope predict --scope outcomes --stream late --name checkout
    """
    _check_installed()
    with error_boundary():
        from swapcal.service import access as tokens

        if all_streams == bool(stream):
            stop("say which streams the token is good for: --stream for each of them, or --all-streams")
        known: set[str] = set()
        if stream:
            with _store(config) as store:
                known = {*_read(config).streams, *store.names()}
        text, row = tokens.create(name, scope, stream, known)
        if print_only:
            import json

            entry = {"key": row.key, "sha256": row.digest, "scopes": row.scopes.split(), "name": row.name}
            entry["streams"] = row.streams.split()
            typer.echo("[[tokens]]", err=True)
            for key, value in entry.items():
                typer.echo(f"{key} = {json.dumps(value)}", err=True)
        else:
            with _store(config) as store:
                store.add_token(row)
        typer.echo(text)


@token.command("list")
def list_tokens(config: _Config = CONFIG) -> None:
    """The tokens in the store: key, name, scopes, streams."""
    _check_installed()
    with error_boundary(), _store(config) as store:
        for row in store.tokens():
            streams = "(all streams)" if row.streams == "*" else row.streams
            typer.echo(f"{row.key}  {row.name or '(no name)'}  {row.scopes}  {streams}")


@token.command("revoke")
def revoke(key: Annotated[str, typer.Argument(help="As `list` shows it.")], config: _Config = CONFIG) -> None:
    """Delete a token; a running service forgets it within seconds."""
    _check_installed()
    with error_boundary(), _store(config) as store:
        if not store.remove_token(key):
            stop(f"there is no token {key!r}; see  swapcal serve token list")


def _store(config: Path) -> "AbstractContextManager[EventStore]":
    from swapcal.service.store import opened

    return opened(_read(config).service.store)


def _read(path: Path) -> "Config":
    from swapcal.service.config import read

    if not path.exists():
        stop(f"there is no {path}; give --config, or try  swapcal serve --demo")
    return read(path)


def _check_installed() -> None:
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        stop(f"the service needs {', '.join(missing)}: install with  pip install 'swapcal[serve]'")
