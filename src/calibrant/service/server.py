"""Listen, and end without losing a request."""

import logging
import os
import signal
import socket
import threading
from pathlib import Path

import uvicorn

from calibrant.errors import UserError
from calibrant.service import logs
from calibrant.service.app import Service, make_app
from calibrant.service.limits import ImpatientProtocol
from calibrant.service.metrics import Metrics
from calibrant.service.reload import Current
from calibrant.service.schemas import Limits

logger = logging.getLogger(__name__)
CONNECTIONS = 1000


def listen(host: str, port: int) -> socket.socket:
    """A socket at that address, before anything slow is done."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=CONNECTIONS)
    except OSError as error:
        why = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror
        raise UserError(
            f"Cannot listen on {host}, port {port} ({why}); name others with --host and --port."
        ) from error


def run_server(
    path: Path,
    at: socket.socket,
    token: str | None,
    threshold: float | None,
    examples: list[str],
    batch: int,
    limits: Limits,
) -> None:
    """Serve a run until SIGTERM or Ctrl-C; what was accepted is answered first."""
    logs.configure()
    metrics = Metrics()
    current = Current(path, threshold, metrics.loaded, metrics.reload_failed)
    model = current.model
    if model.threshold_from == "default":
        logger.warning(
            "the run has no rule of abstention: it abstains below a confidence of %g; learn a rule with "
            "`calibrant threshold`, or name another with --threshold",
            model.threshold,
        )
    host, port, *_ = at.getsockname()
    if token is None and host not in ("127.0.0.1", "::1"):
        logger.warning("anybody who can reach %s may ask: set CALIBRANT_TOKEN to a secret", host)
    service = Service(current, metrics, limits, token, batch, examples)
    server = uvicorn.Server(
        uvicorn.Config(
            make_app(service),
            http=ImpatientProtocol,
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            limit_concurrency=CONNECTIONS,
            timeout_graceful_shutdown=int(limits.seconds + limits.sending_seconds) + 1,
        )
    )
    if threading.current_thread() is threading.main_thread():
        # uvicorn ends well on SIGTERM, and then raises it again; it has been heard by then.
        signal.signal(signal.SIGTERM, lambda *_: None)
    address = f"[{host}]" if ":" in host else host
    logger.info("serving run %s (%s) on http://%s:%d", model.digest, path, address, port)
    server.run(sockets=[at])
    logger.info("ended; every accepted request was answered")
