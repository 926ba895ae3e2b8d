"""An empty endpoint of the same stack: Starlette, msgspec and uvicorn with the service's settings, and nothing behind.

It decodes the same case and answers with a struct of the same kind, which is the least that any such service does.
"""

import sys

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from swapcal.service.schemas import Case, Forecasted

_decode, _encode = msgspec.json.Decoder(Case).decode, msgspec.json.Encoder().encode


async def forecast(request: Request) -> Response:
    """The hint, as it came."""
    case = _decode(await request.body())
    return Response(_encode(Forecasted(case.id, case.hint or 0.0, case.hint)), media_type="application/json")


def main(port: int) -> None:
    """Serve until killed."""
    app = Starlette(routes=[Route("/v1/streams/{stream}/forecasts", forecast, methods=["POST"])])
    settings = {"log_config": None, "access_log": False, "server_header": False, "date_header": False}
    uvicorn.run(app, port=port, proxy_headers=False, timeout_keep_alive=75, **settings)  # type: ignore[arg-type]


if __name__ == "__main__":
    main(int(sys.argv[1]))
