"""The configuration: one TOML file, checked as a whole before anything starts."""

import ipaddress
import os
import re
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

import swapcal as sc
from swapcal.service.schemas import check_name
from swapcal.service.spec import StreamSpec
from swapcal.service.stream import check


class Service(Struct, frozen=True, forbid_unknown_fields=True):
    """[service]: where it listens and where it stores."""

    host: str = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65_535)] = 8377
    store: str = "swapcal.db"
    auth: bool = True
    when_down: Literal["refuse", "hint"] = "refuse"
    advertise: str | None = None
    snapshot_every: Annotated[int, Meta(ge=1, le=1_000_000)] = 20_000
    log: Literal["debug", "info", "warning", "error"] = "info"
    log_requests: bool = False
    traces: bool = False
    stop_seconds: Annotated[int, Meta(ge=1, le=600)] = 10
    store_seconds: Annotated[int, Meta(ge=1, le=600)] = 10


class Limits(Struct, frozen=True, forbid_unknown_fields=True):
    """[limits]: what one client can ask of it."""

    body: Annotated[int, Meta(ge=1024, le=2**30)] = 2 * 2**20
    batch: Annotated[int, Meta(ge=1, le=100_000)] = 1000
    streams: Annotated[int, Meta(ge=1, le=10_000)] = 100
    queue: Annotated[int, Meta(ge=1, le=10_000_000)] = 20_000
    rate: Annotated[float, Meta(ge=0.001, le=1e9)] = 20_000.0
    head: Annotated[int, Meta(ge=1024, le=2**20)] = 65_536
    request_seconds: Annotated[int, Meta(ge=1, le=3600)] = 30
    connections: Annotated[int, Meta(ge=1, le=100_000)] = 500


class Upstream(Struct, frozen=True, forbid_unknown_fields=True):
    """[upstream.<stream>]: the model server that gives the hint where the client sends none."""

    url: Annotated[str, Meta(pattern="^https?://")]
    kind: Literal["mlflow", "v2"] = "mlflow"
    timeout: Annotated[float, Meta(gt=0.0, le=60.0)] = 2.0
    output: str | None = None
    columns: list[str] | None = None


class TokenConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """[[tokens]]: a token kept in the configuration, as `swapcal serve token create --print-only` prints it.

    `streams` are names, or "*" for all.
    """

    key: Annotated[str, Meta(pattern="^[0-9a-f]{12}$")]
    sha256: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
    scopes: list[Literal["predict", "outcomes", "read", "admin"]]
    streams: Annotated[list[str], Meta(min_length=1)]
    name: str = ""


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file."""

    service: Service = Service()
    limits: Limits = Limits()
    streams: dict[str, StreamSpec] = {}
    upstream: dict[str, Upstream] = {}
    tokens: list[TokenConfig] = []


def read(path: Path) -> Config:
    """The configuration in a file; an `InvalidInput` that names the place for one that cannot be used."""
    try:
        config = msgspec.convert(_filled(tomllib.loads(path.read_text(encoding="utf-8"))), Config)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise sc.InvalidInput(f"{path}: {error}") from error
    return checked(config, path)


def _filled(data: dict[str, Any]) -> dict[str, Any]:
    """The same with ${NAME} in `store` and `advertise` taken from the environment, where passwords belong."""
    service = data.get("service")
    for key in ("store", "advertise"):
        if isinstance(service, dict) and isinstance(service.get(key), str):
            service[key] = re.sub(r"\$\{(\w+)\}", _from_environment, service[key])
    return data


def _from_environment(place: re.Match[str]) -> str:
    value = os.environ.get(place[1])
    if value is None:
        raise sc.InvalidInput(
            f"the configuration takes {place[0]} from the environment, and {place[1]} is not set there"
        )
    return value


def checked(config: Config, path: Path | None = None) -> Config:
    """The same configuration, if it makes sense as a whole."""
    where = "" if path is None else f"{path}: "
    for name, spec in config.streams.items():
        try:
            check_name(name)
            check(spec)
        except sc.SwapcalError as error:
            raise sc.InvalidInput(f"{where}stream {name!r}: {error}") from error
    for token in config.tokens:
        for name in set(token.streams) - {"*"}:
            check_name(name)
    unknown = set(config.upstream) - set(config.streams)
    if unknown:
        raise sc.InvalidInput(f"{where}[upstream.{min(unknown)}] names a stream that is not in the file")
    if not config.service.auth and not is_loopback(config.service.host):
        raise sc.InvalidInput(
            f"{where}auth = false is for this machine alone, and {config.service.host} can be reached from others; "
            "leave `auth` out and make a token with  swapcal serve token create"
        )
    return config


def is_loopback(host: str) -> bool:
    """Whether an address can be reached from this machine alone.

    Examples
    --------
    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
