"""How large and how slow a request may be.

The body is read here, counted while it comes, and handed on whole: what waits for an answer waits for no
client. Of a body that is too large the rest is read and thrown away, so that the client gets to read why.
"""

import asyncio
from typing import Any

from fastapi.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from calibrant.service.schemas import Limits

CLOSE = {"Connection": "close"}
HEADER_SECONDS = 10.0


class Body:
    """Answer 413 to a body that is too large, and 408 to one that comes too slowly."""

    def __init__(self, app: ASGIApp, limits: Limits) -> None:
        self._app, self._limits = app, limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the body, then pass it on."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        body, size, more = bytearray(), 0, True
        try:
            async with asyncio.timeout(self._limits.sending_seconds):
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    size += len(message["body"])
                    if size <= self._limits.bytes:
                        body += message["body"]
                    more = message.get("more_body", False)
        except TimeoutError:
            if size <= self._limits.bytes:
                problem = f"The request did not arrive within {self._limits.sending_seconds:g} seconds."
                return await JSONResponse({"detail": problem}, 408, CLOSE)(scope, receive, send)
        if size > self._limits.bytes:
            problem = f"The body has more than {self._limits.bytes} bytes; send fewer texts at a time."
            return await JSONResponse({"detail": problem}, 413, CLOSE)(scope, receive, send)
        whole: list[Message] = [{"type": "http.request", "body": bytes(body), "more_body": False}]

        async def handed_on() -> Message:
            return whole.pop() if whole else await receive()

        await self._app(scope, handed_on, send)


class ImpatientProtocol(H11Protocol):
    """Closes a connection that has begun no request for some seconds: uvicorn would wait for its headers."""

    _look: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin to look at it."""
        super().connection_made(transport)
        self._look = self.loop.call_later(HEADER_SECONDS, self._look_again, None)

    def connection_lost(self, exc: Exception | None) -> None:
        """Look no more."""
        if self._look is not None:
            self._look.cancel()
        super().connection_lost(exc)

    def _look_again(self, last: Any) -> None:
        idle = self.cycle is None or self.cycle.response_complete
        if idle and self.cycle is last:
            self.transport.close()
        else:
            self._look = self.loop.call_later(HEADER_SECONDS, self._look_again, self.cycle)
