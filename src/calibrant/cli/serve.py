"""``calibrant serve``."""

import os
from typing import Annotated

import typer

from calibrant.cli.options import RunFolder


def serve(
    run: RunFolder,
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 for all.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 for any that is free.")] = 8000,
    threshold: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="Abstain below this confidence; 0 never [the rule of `calibrant threshold`, or 0.5].",
        ),
    ] = None,
    examples: Annotated[
        str | None,
        typer.Option(help="File of texts to try on the page [dev texts, where the dataset is public]."),
    ] = None,
    max_batch: Annotated[
        int, typer.Option(help="Texts answered together; 1: the very bits of classifier.predict([text]).")
    ] = 64,
    max_waiting: Annotated[int, typer.Option(help="Texts that may wait; what comes then gets 503.")] = 1024,
    timeout: Annotated[
        float, typer.Option(help="Seconds within which a request is answered, or gets 504.")
    ] = 30,
) -> None:
    """Serve a run over HTTP: a page at /, POST /predict, /metrics for Prometheus, /docs.

    Set CALIBRANT_TOKEN to ask for a bearer token. Logs are JSON lines on standard error, without texts.

    \b
    Example:  calibrant serve runs/tickets
    """
    from calibrant.tasks import serve as task

    task.serve(
        run,
        host=host,
        port=port,
        token=os.environ.get("CALIBRANT_TOKEN"),
        threshold=threshold,
        examples=examples,
        max_batch=max_batch,
        max_waiting=max_waiting,
        timeout=timeout,
    )
