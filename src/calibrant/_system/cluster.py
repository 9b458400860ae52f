"""A Ray cluster, for as long as a piece of work takes."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from calibrant.errors import UserError


@contextmanager
def cluster(address: str | None, asked: str, threads: int) -> Iterator[Any]:
    """Ray, connected to the cluster at an address or to one of this machine's cores that ends with the block.

    ``asked`` is the option that wants it, and ``threads`` how many cores of one machine it wants at a time.
    """
    try:
        import ray
    except ImportError as error:
        raise UserError(
            f"{asked} needs Ray, which is not installed: pip install 'calibrant[ray]'."
        ) from error
    # Ray's workers give way to all others by default: on a busy machine nothing comes back for minutes.
    os.environ.setdefault("RAY_worker_niceness", "0")
    # Ray Data's own actors make Ray's core print errors that are none.
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    try:
        _knock(address or "")
        ray.init(
            address=address or "local",  # and not one that `ray start` left on this machine
            include_dashboard=False if address is None else None,
            log_to_driver=False,
            logging_level="ERROR",
        )
    except (OSError, ValueError) as error:
        if address is None:
            raise
        raise UserError(
            f"--address {address}: no Ray cluster answers there; start one with `ray start --head`, or leave "
            "the address out."
        ) from error
    try:
        most = max(cores for cores, _ in machines(ray))
        if threads > most:  # Ray would wait for a larger one for ever
            raise UserError(
                f"--threads {threads}: a model runs on one machine, and the largest of the Ray cluster has "
                f"{most:.0f} cores; ask for fewer."
            )
        yield ray
    finally:
        ray.shutdown()


def machines(ray: Any) -> list[tuple[int, int]]:
    """The cores and GPUs of each machine that is alive."""
    alive = (node["Resources"] for node in ray.nodes() if node["Alive"])
    return [(int(has.get("CPU", 0)), int(has.get("GPU", 0))) for has in alive]


def _knock(address: str) -> None:
    """A short question, since Ray asks for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host, int(port)), timeout=5).close()
