"""``calibrant serve``: a run behind HTTP, with a page for people and metrics for Prometheus."""

import math
from pathlib import Path

from calibrant.errors import UserError
from calibrant.runs import store


def serve(
    run: Path | str,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    token: str | None = None,
    threshold: float | None = None,
    examples: Path | str | None = None,
    max_batch: int = 64,
    max_waiting: int = 1024,
    timeout: float = 30.0,
) -> None:
    """Answer requests until SIGTERM or Ctrl-C; what was accepted is answered first.

    Args:
        run: its folder. Where it is replaced, the new run is loaded and takes over.
        host: address to listen on; 0.0.0.0 for all.
        port: 0 for any that is free.
        token: who asks must send it as a bearer token.
        threshold: abstain below this confidence, 0 never [the run's rule; 0.5 where it has none].
        examples: a file of texts to try on the page.
        max_batch: texts that are answered together. With 1 an answer has the very bits of
            ``classifier.predict([text])``.
        max_waiting: texts that may wait; what comes then gets 503.
        timeout: seconds within which a request is answered, or gets 504.
    """
    try:
        from calibrant.service.examples import from_file
        from calibrant.service.schemas import Limits
        from calibrant.service.server import listen, run_server
    except ModuleNotFoundError as error:
        raise UserError(
            f"`calibrant serve` needs {error.name}, which is not installed; pip install 'calibrant[serve]'."
        ) from error
    if not 0 <= port <= 65535:
        raise UserError(f"--port must lie in 0..65535, got {port}.")
    if max_batch < 1:
        raise UserError(f"--max-batch must be 1 or more, got {max_batch}.")
    if max_waiting < 1:
        raise UserError(f"--max-waiting must be 1 or more, got {max_waiting}.")
    if not 0 < timeout < math.inf:
        raise UserError(f"--timeout must be a number of seconds above 0, got {timeout:g}.")
    if threshold is not None and not 0 <= threshold <= 1:
        raise UserError(f"--threshold must lie in [0, 1], got {threshold:g}.")
    if token is not None and (not token.isascii() or not token.strip() or token != token.strip()):
        raise UserError("The token (CALIBRANT_TOKEN) is empty, not ASCII, or has spaces around it.")
    loaded = store.load(run)
    shown = [] if examples is None else from_file(loaded, examples)
    with listen(host, port) as at:
        limits = Limits(waiting=max_waiting, seconds=timeout)
        run_server(Path(run), at, token, threshold, shown, max_batch, limits)
