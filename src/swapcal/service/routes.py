"""Every route, with who may, what it takes and what it answers."""

from swapcal.service import case_routes, inference, looks, streams
from swapcal.service.operations import Operation
from swapcal.service.reading import AuditReading
from swapcal.service.schemas import (
    Alarms,
    Answers,
    Case,
    Cases,
    Forecasted,
    Forgotten,
    Learned,
    Outcome,
    Outcomes,
    Results,
    StoredCase,
    StreamList,
)
from swapcal.service.spec import StreamAnswer, StreamSpec

__all__ = ["OPERATIONS"]

S = "/v1/streams/{stream}"
_CASE = {"id": "flight-1545", "context": {"carrier": "UA", "origin": "EWR", "hour": 5}, "hint": 0.21}
_FORECAST = {
    "result": "forecast",
    "id": "flight-1545",
    "forecast": 0.1818,
    "hint": 0.21,
    "other": 0.1818,
    "probability": 1.0,
    "round": 0,
    "calibrated": True,
    "replayed": False,
}
_SPEC = {"property": "probability", "groups": ["carrier", "origin", ["carrier", "origin"]], "delay": "7d"}
_INFER = {
    "id": "flight-1546",
    "inputs": [
        {"name": "carrier", "shape": [1], "datatype": "BYTES", "data": ["UA"]},
        {"name": "hint", "shape": [1], "datatype": "FP64", "data": [0.21]},
    ],
}
_INVOKE = {"dataframe_records": [{"id": "flight-1547", "carrier": "UA", "hint": 0.21}], "params": {"stream": "late"}}

OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "POST", f"{S}/forecasts", "predict", "Forecast one case or several", case_routes.forecast,
        (Forecasted, Answers), (Case, Cases), (404, 409, 502), (200, 207), _CASE, _FORECAST, ("cases",),
    ),
    Operation(
        "POST", f"{S}/outcomes", "outcomes", "Learn one outcome or several", case_routes.learn,
        (Learned, Forgotten, Results), (Outcome, Outcomes), (404, 409, 410), (200, 207),
        {"id": "flight-1545", "y": 0.0},
        {"result": "learned", "id": "flight-1545", "y": 0.0, "replayed": False}, ("cases",),
    ),
    Operation(
        "GET", f"{S}/cases/{{id}}", "read", "A case as it is stored", case_routes.stored_case, (StoredCase,),
        statuses=(404,), tags=("cases",),
    ),
    Operation("GET", f"{S}/audit", "read", "Errors and groups", looks.audit, (AuditReading,), statuses=(404,)),
    Operation("GET", f"{S}/report", "read", "The audit as a page", looks.report, "text/html", statuses=(404,)),
    Operation("GET", f"{S}/alarms", "read", "Alarms", looks.alarms, (Alarms,), statuses=(404,)),
    Operation("GET", f"{S}/events", "read", "Pulses as they come", looks.events, "text/event-stream", statuses=(404,)),
    Operation("GET", "/v1/streams", "read", "The streams", streams.list_streams, (StreamList,)),
    Operation(
        "PUT", S, "admin", "Make a stream", streams.put_stream, (StreamAnswer,), (StreamSpec,), (409,),
        (200, 201), _SPEC,
    ),
    Operation("GET", S, "read", "A stream", streams.get_stream, (StreamAnswer,), statuses=(404,)),
    Operation(
        "DELETE", S, "admin", "Delete a stream", streams.delete_stream, None, statuses=(404, 409), success=(204,)
    ),
    Operation(
        "POST", "/v2/models/{stream}/infer", "predict", "Forecast, Open Inference Protocol", inference.infer,
        (inference.InferResponse,), (inference.InferRequest,), (404, 409, 502), (200,), _INFER, tags=("inference",),
    ),
    Operation(
        "GET", "/v2/models/{stream}", "predict", "A stream as a model", inference.model, (inference.ModelMetadata,),
        statuses=(404,), tags=("inference",),
    ),
    Operation(
        "GET", "/v2/models/{stream}/ready", "predict", "Whether a stream can forecast", inference.model_ready,
        (inference.Live,), statuses=(404,), tags=("inference",),
    ),
    Operation(
        "POST", "/invocations", "predict", "Forecast, as MLflow's server", inference.invocations, (inference.Invoked,),
        (inference.Invocation,), (404, 409, 502), (200,), _INVOKE, tags=("inference",),
    ),
    Operation("GET", "/v2/health/live", None, "Alive", inference.live, (inference.Live,), tags=("health",)),
    Operation(
        "GET", "/v2/health/ready", None, "Ready", inference.ready, (inference.Live,), success=(200, 503),
        tags=("health",),
    ),
    Operation(
        "GET", "/ping", None, "Ready, MLflow", inference.ping, (inference.Live,), success=(200, 503), tags=("health",)
    ),
    Operation("GET", "/metrics", "read", "Prometheus metrics", looks.metrics, "text/plain", tags=("operation",)),
    Operation("GET", "/", "read", "The live page", looks.live_page, "text/html", tags=("operation",)),
)  # fmt: skip
