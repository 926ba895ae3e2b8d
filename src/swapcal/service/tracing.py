"""OpenTelemetry traces, where the package is installed and the configuration asks for them.

Where spans go is OpenTelemetry's own business: its environment variables, or `opentelemetry-instrument`.
"""

from importlib.util import find_spec

from starlette.types import ASGIApp, Message, Receive, Scope, Send

import swapcal as sc

__all__ = ["traced"]


def traced(app: ASGIApp) -> ASGIApp:
    """The application with a span around each request; it costs about as much as a small request itself."""
    if find_spec("opentelemetry") is None:
        raise sc.MissingExtra("traces = true needs OpenTelemetry: install with  pip install opentelemetry-sdk")
    import opentelemetry.propagate as propagate
    import opentelemetry.trace as trace

    tracer = trace.get_tracer("swapcal.service")

    async def spanned(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        carrier = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        context = propagate.extract({name: carrier[name] for name in ("traceparent", "tracestate") if name in carrier})
        with tracer.start_as_current_span(
            f"{scope['method']} swapcal", context=context, kind=trace.SpanKind.SERVER
        ) as span:

            async def noted(message: Message) -> None:
                if message["type"] == "http.response.start":
                    span.set_attribute("http.response.status_code", message["status"])
                await send(message)

            span.set_attribute("http.request.method", scope["method"])
            await app(scope, receive, noted)
            # Starlette notes the route's pattern while it dispatches: the pattern holds no id.
            route = scope.get("route")
            if route is not None:
                span.set_attribute("http.route", route.path)
                span.update_name(f"{scope['method']} {route.path}")

    return spanned
