"""A JSON line for each request and event, on standard error. Texts are in none of them."""

import json
import logging
import time
import traceback
from datetime import UTC, datetime
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from calibrant.service.metrics import Metrics

logger = logging.getLogger(__name__)


class JsonLines(logging.Formatter):
    """A record as one JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        """Its time, level, message and ``fields``; of an exception where it happened, not what it says."""
        told: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info and record.exc_info[0] is not None:
            frames = traceback.extract_tb(record.exc_info[2])
            told["exception"] = record.exc_info[0].__name__  # its message may quote a text
            told["where"] = [f"{frame.filename}:{frame.lineno}" for frame in frames]
        return json.dumps(told, ensure_ascii=False)


def configure() -> None:
    """What calibrant, uvicorn and warnings say, as JSON lines; the libraries' chatter is not printed."""
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    logging.captureWarnings(True)
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    for name, level in (
        ("calibrant", logging.INFO),
        ("uvicorn", logging.WARNING),
        ("py.warnings", logging.INFO),
    ):
        at = logging.getLogger(name)
        at.handlers, at.level, at.propagate = [handler], level, False


class Requests:
    """Log and count every request."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass it on, and take note of the end."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        began, status = time.perf_counter(), 0

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        scope["calibrant"] = {}  # what the route adds to the line
        try:
            await self._app(scope, receive, noted)
        except Exception:
            status = 500
            logger.exception("request failed")
            raise
        finally:
            seconds = time.perf_counter() - began
            # The route and not the path: a scanner's paths would make a metric each.
            route = getattr(scope.get("route"), "path", "other")
            self._metrics.request(route, status, seconds)
            fields = {
                "method": scope["method"],
                "route": route,
                "status": status,
                "ms": round(1e3 * seconds, 1),
            }
            logger.info("request", extra={"fields": fields | scope["calibrant"]})
