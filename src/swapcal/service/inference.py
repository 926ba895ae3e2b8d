"""The shapes of other servers, Open Inference Protocol and MLflow, so that the service fits before a model server.

A column `id` names the case and a column `hint` brings the model's number; every other column is context. Cases without
an id get a random one, which is in the answer.
"""

import uuid
from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from swapcal.service.access import decode, json, read_body
from swapcal.service.handlers import forecast_all
from swapcal.service.schemas import Case, Forecasted, Problem, Refused, Scalar
from swapcal.service.server import Server
from swapcal.version import __version__

Cell = Scalar | list[Scalar]


class InputTensor(Struct, frozen=True):
    """A column, as a tensor of shape [n] or [n, 1]."""

    name: Annotated[str, Meta(min_length=1, max_length=100)]
    shape: Annotated[list[Annotated[int, Meta(ge=0, le=1_000_000)]], Meta(min_length=1, max_length=2)]
    datatype: Annotated[str, Meta(max_length=20)]
    data: list[Cell]


class InferRequest(Struct, frozen=True):
    """A request of the Open Inference Protocol, version 2."""

    inputs: Annotated[list[InputTensor], Meta(min_length=1, max_length=202)]
    id: Annotated[str, Meta(max_length=200)] | None = None
    parameters: dict[str, Any] | None = None
    outputs: list[Any] | None = None


class OutputTensor(Struct, frozen=True):
    """A column of the answer."""

    name: str
    shape: list[int]
    datatype: str
    data: list[Any]


class InferResponse(Struct, frozen=True, omit_defaults=True):
    """The answer: forecasts, and the ids to send outcomes with."""

    model_name: str
    outputs: list[OutputTensor]
    model_version: str = __version__
    id: str | None = None


class Split(Struct, frozen=True):
    """A table: names of columns, and rows."""

    columns: Annotated[list[Annotated[str, Meta(max_length=100)]], Meta(max_length=202)]
    data: list[list[Scalar]]
    index: list[Any] | None = None


class Invocation(Struct, frozen=True):
    """What MLflow's scoring server takes; `params.stream` names the stream where there are several."""

    dataframe_split: Split | None = None
    dataframe_records: list[Annotated[dict[str, Scalar], Meta(max_length=202)]] | None = None
    params: dict[str, Any] | None = None


class Invoked(Struct, frozen=True):
    """Forecasts as MLflow's server would answer, and the ids to send outcomes with."""

    predictions: list[float]
    ids: list[str]


class Live(Struct, frozen=True):
    """Whether the service is there."""

    live: bool
    ready: bool


class ModelMetadata(Struct, frozen=True):
    """A stream as a model of the Open Inference Protocol."""

    name: str
    platform: str
    versions: list[str]
    inputs: list[Any]
    outputs: list[Any]


_INFER, _INVOKE, _CASE = msgspec.json.Decoder(InferRequest), msgspec.json.Decoder(Invocation), Case


async def infer(server: Server, request: Request) -> Response:
    """Forecasts, in the shape of the Open Inference Protocol."""
    name: str = request.path_params["stream"]
    asked = decode(_INFER, await read_body(request, server.config.limits.body))
    columns = {tensor.name: _column(tensor) for tensor in asked.inputs}
    lengths = {len(column) for column in columns.values()}
    if len(columns) != len(asked.inputs) or len(lengths) != 1 or lengths == {0}:
        raise Problem(422, "inputs are columns of one length, at least 1, each named once")
    [n] = lengths
    records = [{column: values[row] for column, values in columns.items()} for row in range(n)]
    if "id" not in columns and asked.id is not None:
        records = [{**record, "id": asked.id if n == 1 else f"{asked.id}:{row}"} for row, record in enumerate(records)]
    made = await _forecast(server, request, name, records)
    outputs = [
        OutputTensor("forecast", [n], "FP64", [one.forecast for one in made]),
        OutputTensor("id", [n], "BYTES", [one.id for one in made]),
    ]
    return json(InferResponse(name, outputs, id=asked.id))


async def invocations(server: Server, request: Request) -> Response:
    """Forecasts, in the shape of MLflow's scoring server."""
    asked = decode(_INVOKE, await read_body(request, server.config.limits.body))
    name = _chosen(server, asked.params)
    server.access.permit(request.scope["token"], "predict", name)
    if (asked.dataframe_split is None) == (asked.dataframe_records is None):
        raise Problem(422, "give either dataframe_split or dataframe_records")
    if asked.dataframe_split is not None:
        columns = asked.dataframe_split.columns
        if any(len(row) != len(columns) for row in asked.dataframe_split.data):
            raise Problem(422, f"every row has {len(columns)} entries, one for each column")
        records = [dict(zip(columns, row, strict=True)) for row in asked.dataframe_split.data]
    else:
        records = asked.dataframe_records or []
    if not records:
        raise Problem(422, "there is no row to forecast")
    made = await _forecast(server, request, name, records)
    return json(Invoked([one.forecast for one in made], [one.id for one in made]))


def _chosen(server: Server, params: dict[str, Any] | None) -> str:
    name = (params or {}).get("stream", server.config.service.default_stream)
    if name is None and len(server.config.streams) == 1:
        [name] = server.config.streams
    if not isinstance(name, str):
        raise Problem(422, "say which stream: params.stream in the body, or default_stream in the configuration")
    return name


async def _forecast(
    server: Server, request: Request, name: str, records: Sequence[dict[str, Scalar]]
) -> list[Forecasted]:
    if len(records) > server.config.limits.batch:
        raise Problem(413, f"a request holds at most {server.config.limits.batch} cases; got {len(records)}")
    cases = [_case(record) for record in records]
    server.access.charge(request.scope["token"], len(cases))
    answers = await forecast_all(server, name, cases)
    refused = [answer for answer in answers if isinstance(answer, Refused)]
    if refused:
        first = refused[0]
        raise Problem(first.status, f"{len(refused)} of {len(answers)} cases were refused; the first: {first.detail}")
    return [answer for answer in answers if isinstance(answer, Forecasted)]


def _case(record: dict[str, Scalar]) -> Case:
    rest = dict(record)
    named, hint = rest.pop("id", None), rest.pop("hint", None)
    plain = {"id": str(uuid.uuid4()) if named is None else str(named), "context": rest, "hint": hint}
    try:
        return msgspec.convert(plain, _CASE)
    except msgspec.ValidationError as error:
        raise Problem(422, f"a row is no case: {error}") from None


def _column(tensor: InputTensor) -> list[Scalar]:
    n = tensor.shape[0]
    if len(tensor.shape) == 2 and tensor.shape[1] != 1:
        raise Problem(422, f"input {tensor.name!r} has shape {tensor.shape}; a column has shape [n] or [n, 1]")
    column: list[Scalar] = []
    for cell in tensor.data:
        if isinstance(cell, list):
            if len(cell) != 1:
                raise Problem(422, f"input {tensor.name!r} has rows of several entries; a column has one")
            column.append(cell[0])
        else:
            column.append(cell)
    if len(column) != n:
        raise Problem(422, f"input {tensor.name!r} says that it has {n} entries and has {len(column)}")
    return column


async def model(server: Server, request: Request) -> Response:
    """A stream's columns, as the Open Inference Protocol describes a model."""
    name: str = request.path_params["stream"]
    spec = await server.query(lambda registry: registry.get(name).spec)
    columns = [one for group in spec.groups for one in ([group] if isinstance(group, str) else group)]
    texts = [{"name": one, "datatype": "BYTES", "shape": [-1]} for one in dict.fromkeys(columns)]
    numbers = [{"name": one, "datatype": "FP64", "shape": [-1]} for one in ("hint", *spec.features)]
    inputs = [{"name": "id", "datatype": "BYTES", "shape": [-1]}, *numbers, *texts]
    outputs = [
        {"name": "forecast", "datatype": "FP64", "shape": [-1]},
        {"name": "id", "datatype": "BYTES", "shape": [-1]},
    ]
    return json(ModelMetadata(name, "swapcal", [__version__], inputs, outputs))


async def model_ready(server: Server, request: Request) -> Response:
    """Whether a stream can forecast."""
    name: str = request.path_params["stream"]
    await server.query(lambda registry: registry.get(name).name)
    return json(Live(live=True, ready=True))


async def live(server: Server, request: Request) -> Response:
    """Whether the process answers."""
    return json(Live(live=True, ready=server.writer.ready))


async def ready(server: Server, request: Request) -> Response:
    """Whether the store works and streams are loaded."""
    good = server.writer.ready and server.writer.is_alive() and not server.stopping.is_set()
    return json(Live(live=True, ready=good), 200 if good else 503)


async def ping(server: Server, request: Request) -> Response:
    """The same, where MLflow's server has it."""
    return await ready(server, request)
