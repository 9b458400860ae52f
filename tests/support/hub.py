"""A stand-in for the Hugging Face hub: the few questions that its client asks when a model goes or comes.

Files are kept in memory, one commit after another. Whoever writes must say the token.
"""

import base64
import hashlib
import json
import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

import huggingface_hub
import yaml

TOKEN = "hf_stand_in"


class Hub:
    """What it holds: ``files`` by path, for each repository, and ``cards`` that were looked at."""

    def __init__(self, address):
        self.address = address
        self.files, self.private, self.tags = {}, {}, {}

    def sha(self, name):
        told = [
            (path, hashlib.sha1(content).hexdigest()) for path, content in sorted(self.files[name].items())
        ]
        return hashlib.sha1(json.dumps(told).encode()).hexdigest()


class Handler(BaseHTTPRequestHandler):
    hub: Hub

    def log_message(self, *_):
        pass

    def answer(self, value, status=200, headers=()):
        content = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        for name, text in (("Content-Length", str(len(content))), *headers):
            self.send_header(name, text)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def refuse(self, status, code, words):
        self.answer({"error": words}, status, [("X-Error-Code", code), ("X-Error-Message", words)])

    def do_POST(self):
        path = unquote(urlsplit(self.path).path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if path == "/api/validate-yaml":
            front = re.match(r"---\n(.*?)\n---\n", json.loads(body)["content"], re.DOTALL)
            fine = front is not None and isinstance(yaml.safe_load(front[1]), dict)
            return self.answer({"errors": [] if fine else [{"message": "no metadata"}], "warnings": []})
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self.refuse(401, "", "Invalid username or password.")
        if path == "/api/repos/create":
            asked = json.loads(body)
            name = "/".join(filter(None, (asked.get("organization"), asked["name"])))
            name = name if "/" in name else f"me/{name}"
            if name in self.hub.files:
                return self.answer({"url": f"{self.hub.address}/{name}", "error": "exists"}, 409)
            private = asked.get("visibility") == "private" or bool(asked.get("private"))
            self.hub.files[name], self.hub.private[name] = {}, private
            return self.answer({"url": f"{self.hub.address}/{name}", "name": name, "id": name})
        name = re.match(r"/api/models/([^/]+/[^/]+)/", path)[1]
        if "/preupload/" in path:
            plain = {"uploadMode": "regular", "shouldIgnore": False, "oid": None}
            return self.answer({"files": [{"path": f["path"], **plain} for f in json.loads(body)["files"]]})
        assert "/commit/" in path, path
        for line in body.splitlines():
            entry = json.loads(line)
            if entry["key"] == "file":
                content = base64.b64decode(entry["value"]["content"])
                self.hub.files[name][entry["value"]["path"]] = content
            elif entry["key"] == "deletedFile":
                del self.hub.files[name][entry["value"]["path"]]
        sha = self.hub.sha(name)
        return self.answer({"commitUrl": f"{self.hub.address}/{name}/commit/{sha}", "commitOid": sha})

    def do_GET(self):
        path = unquote(urlsplit(self.path).path)
        allowed = self.headers.get("Authorization") == f"Bearer {TOKEN}"
        if path == "/api/whoami-v2":
            return self.answer({"name": "me"}) if allowed else self.refuse(401, "", "Invalid credentials")
        found = re.match(r"(?:/api/models)?/([^/]+/[^/]+)(/.*)?$", path)
        name, rest = (found[1], found[2] or "") if found else ("", "")
        if name not in self.hub.files or (self.hub.private[name] and not allowed):
            return self.refuse(401, "RepoNotFound", "Repository not found")
        files, sha = self.hub.files[name], self.hub.sha(name)
        if rest.startswith("/tree/"):
            entries = [
                {"type": "file", "path": file, "size": len(content), "oid": hashlib.sha1(content).hexdigest()}
                for file, content in files.items()
            ]
            return self.answer(entries)
        if found := re.match(r"/resolve/[^/]+/(.*)", rest):
            if found[1] not in files:
                return self.refuse(404, "EntryNotFound", "Entry not found")
            content = files[found[1]]
            tags = [("ETag", f'"{hashlib.sha1(content).hexdigest()}"'), ("X-Repo-Commit", sha)]
            return self.answer(content, headers=tags)
        siblings = [{"rfilename": file} for file in files]
        tags = self.hub.tags.get(name, [])
        return self.answer({"id": name, "modelId": name, "sha": sha, "siblings": siblings, "tags": tags})

    do_HEAD = do_GET


@contextmanager
def stand_in(monkeypatch, home):
    """The client of this process talks to a hub of its own."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hub = Hub(f"http://127.0.0.1:{server.server_port}")
    server.RequestHandlerClass = type("Handler", (Handler,), {"hub": hub})
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    constants = huggingface_hub.constants
    for name, value in {
        "HF_HUB_OFFLINE": False,
        "ENDPOINT": hub.address,
        "HUGGINGFACE_CO_URL_TEMPLATE": hub.address + "/{repo_id}/resolve/{revision}/{filename}",
        "HF_HUB_CACHE": str(home / "hub"),
        "HF_TOKEN_PATH": str(home / "token"),
        "HF_STORED_TOKENS_PATH": str(home / "tokens"),
    }.items():
        if hasattr(constants, name):
            monkeypatch.setattr(constants, name, value)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
