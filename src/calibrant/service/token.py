"""Who may ask: whoever sends the bearer token, where the service has one."""

import hmac

from fastapi.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

OPEN = ("/", "/page", "/docs", "/openapi.json", "/healthz", "/readyz")
"""What tells nothing of the run or of texts."""


class Token:
    """Answer 401 where the token is missing or another."""

    def __init__(self, app: ASGIApp, token: str | None) -> None:
        self._app = app
        self._expected = None if token is None else f"bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on what may pass."""
        if scope["type"] != "http" or self._expected is None or _is_open(scope["path"]):
            return await self._app(scope, receive, send)
        given = dict(scope["headers"]).get(b"authorization", b"")
        scheme, _, secret = given.partition(b" ")
        # In constant time: how long it takes says nothing of how much was right.
        if hmac.compare_digest(scheme.lower() + b" " + secret, self._expected):
            return await self._app(scope, receive, send)
        problem = "The token is missing or wrong; send the header `Authorization: Bearer TOKEN`."
        refusal = JSONResponse({"detail": problem}, 401, {"WWW-Authenticate": "Bearer"})
        await refusal(scope, receive, send)


def _is_open(path: str) -> bool:
    return path in OPEN or path.startswith("/page/")
