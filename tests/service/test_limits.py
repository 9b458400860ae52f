"""Clients that send too much, too slowly, or not at all. Over real sockets: it is the server that waits."""

import json
import socket
import time
from http.client import HTTPConnection

import pytest

from calibrant.service import limits
from calibrant.service.schemas import Limits
from service.conftest import listening, make_service


@pytest.fixture
def at(familiar_run, monkeypatch):
    """The address of a service with little patience."""
    monkeypatch.setattr(limits, "HEADER_SECONDS", 0.5)
    with listening(make_service(familiar_run, limits=Limits(sending_seconds=1.0))) as address:
        yield address


def answer(connection):
    """Status line, headers and body of what comes before the connection is closed."""
    connection.settimeout(20)
    received = b""
    while part := connection.recv(65536):
        received += part
    head, _, body = received.partition(b"\r\n\r\n")
    return head.decode(), body


def head_of(length, *more):
    lines = [
        "POST /predict HTTP/1.1",
        "Host: x",
        "Content-Type: application/json",
        f"Content-Length: {length}",
    ]
    return "\r\n".join([*lines, *more, "", ""]).encode()


def trickle(connection, content, pause=0.1):
    for byte in content:
        try:
            connection.sendall(bytes([byte]))
        except OSError:  # it has hung up
            return
        time.sleep(pause)


def test_a_body_that_comes_a_byte_at_a_time_is_a_408(at):
    with socket.create_connection(at) as connection:
        connection.sendall(head_of(1000))
        trickle(connection, b'{"texts": "ab')
        head, body = answer(connection)
    assert head.startswith("HTTP/1.1 408 ")
    assert json.loads(body) == {"detail": "The request did not arrive within 1 seconds."}


def test_headers_that_come_a_byte_at_a_time_are_not_waited_for(at):
    with socket.create_connection(at) as connection:
        began = time.monotonic()
        trickle(connection, head_of(10)[:40])
        assert answer(connection) == ("", b"")
        assert time.monotonic() - began < 15


def test_a_client_that_says_nothing_is_not_waited_for(at):
    with socket.create_connection(at) as connection:
        assert answer(connection) == ("", b"")


def test_a_connection_that_goes_on_asking_stays(at):
    body = b'{"texts": "refund"}'
    connection = HTTPConnection(*at, timeout=20)
    for _ in range(4):
        connection.request("POST", "/predict", body, {"Content-Type": "application/json"})
        local = connection.sock.getsockname()
        assert connection.getresponse().read().startswith(b'{"answers":')
        time.sleep(0.3)
        assert connection.sock.getsockname() == local
    connection.close()


def test_a_huge_body_is_read_away_and_gets_a_413(at):
    with socket.create_connection(at) as connection:
        connection.sendall(head_of(20 << 20))
        for _ in range(20):
            connection.sendall(b" " * (1 << 20))  # all of it, before it reads: as many clients do
        head, body = answer(connection)
    assert head.startswith("HTTP/1.1 413 ")
    assert "connection: close" in head.lower()
    assert json.loads(body) == {"detail": "The body has more than 1048576 bytes; send fewer texts at a time."}


def test_a_body_that_never_ends_gets_a_413_too(at):
    with socket.create_connection(at) as connection:
        connection.sendall(head_of(1).replace(b"Content-Length: 1", b"Transfer-Encoding: chunked"))
        for _ in range(3):
            connection.sendall(b"80000\r\n" + b" " * 0x80000 + b"\r\n")
        head, _ = answer(connection)
    assert head.startswith("HTTP/1.1 413 ")


def test_who_hangs_up_is_forgotten_and_others_are_answered(at):
    with socket.create_connection(at) as connection:
        connection.sendall(head_of(1000) + b"{")
    body = b'{"texts": "refund"}'
    with socket.create_connection(at) as connection:
        connection.sendall(head_of(len(body), "Connection: close") + body)
        head, _ = answer(connection)
    assert head.startswith("HTTP/1.1 200 ")
