"""Who is let in, who is not, and what the page is made of: nothing that makes HTML or code."""

import os
import re
import socket
import stat
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

import biglp
from biglp._core import ParameterError
from biglp._labelling import Address, Guard, kept_token
from label_tools import HOST, OWN, TOKEN, Client


async def inside(request):
    return PlainTextResponse("inside")


@pytest.fixture
def client():
    paths = [Route(path, inside, methods=["GET", "POST"]) for path in ("/", "/api/x")]
    return Client(Guard(Starlette(routes=paths), TOKEN, (HOST, "localhost:8000")))


@pytest.fixture
def known(client):
    client.cookies.set(client.app.cookie, TOKEN)
    return client


def test_the_token_is_swapped_for_a_cookie(client):
    reply = client.get(f"/?token={TOKEN}")
    assert reply.status_code == 303
    assert reply.headers["location"] == "/"
    assert "HttpOnly" in reply.headers["set-cookie"]
    assert "SameSite=Strict" in reply.headers["set-cookie"]
    assert client.get("/").text == "inside"
    # Browsers send the cookies of 127.0.0.1 to all its ports: each server has its own.
    other = Guard(Starlette(), "x" * 40, ("127.0.0.1:8001",))
    assert {client.app.cookie, other.cookie} == {"biglp-8000", "biglp-8001"}


PATHS = ["/", "/?token=", "/?token=wrong", f"/?token={TOKEN}x", "/api/x", f"/api/x?token={TOKEN}"]


@pytest.mark.parametrize("path", PATHS)
def test_without_the_token(client, path):
    reply = client.get(path)
    assert reply.status_code == 403
    assert "token" in reply.text
    assert "set-cookie" not in reply.headers
    for cookie in ("wrong", "", TOKEN + "x", TOKEN[:-1]):
        client.cookies.set(client.app.cookie, cookie)
        assert client.get(path).status_code == 403


FOREIGN = [
    *({"host": host} for host in ("evil.example", "evil.example:8000", "", HOST + ".")),
    *({"host": host} for host in ("127.0.0.1", "127.0.0.1:9999")),
    *({**OWN, "origin": site} for site in ("http://evil.example", "null", f"http://x.{HOST}")),
    *({**OWN, "origin": site} for site in ("http://127.0.0.1:9999", f"ftp://{HOST}")),
    {"sec-fetch-site": "cross-site"},
    # Which of two headers counts, programs do not agree on.
    [*OWN.items(), ("host", HOST), ("host", "evil.example")],
    [("host", "evil.example"), *OWN.items(), ("host", HOST)],
    [*OWN.items(), ("origin", "http://evil.example")],
    [("origin", "http://evil.example"), *OWN.items()],
]


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
def test_requests_that_another_site_has_made(known, headers):
    for method, path in (("GET", "/api/x"), ("POST", "/api/x"), ("GET", f"/?token={TOKEN}")):
        assert known.request(method, path, headers=headers).status_code == 403


def test_a_change_needs_origin_and_header_and_is_small(known):
    assert known.get("/api/x", headers={"host": "LOCALHOST:8000"}).status_code == 200
    assert known.post("/api/x", json={}, headers=OWN).status_code == 200
    for missing in OWN:
        headers = {name: value for name, value in OWN.items() if name != missing}
        assert known.post("/api/x", json={}, headers=headers).status_code == 403
    assert known.post("/api/x", content=b"x" * (5 << 20), headers=OWN).status_code == 413


@pytest.mark.parametrize("path", ["/", "/api/x", "/?token=wrong", "/nothing"])
def test_every_answer_says_what_a_page_may_load(known, path):
    headers = known.get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "no-referrer"


def test_the_token_is_the_same_after_a_restart_and_nobody_elses(tmp_path, monkeypatch):
    labels = tmp_path / "answers.csv"
    token = kept_token(labels)
    assert len(token) > 32
    assert kept_token(labels) == token
    file = tmp_path / ".answers.csv.token"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.chmod(0o644)  # then others may have read it
    again = kept_token(labels)
    assert len({token, again, kept_token(tmp_path / "others.csv")}) == 3
    file.chmod(0o666)  # what Windows says of any file
    monkeypatch.delattr(os, "getuid")
    assert kept_token(labels) == again


def test_other_machines_are_kept_out(monkeypatch):
    for host in ("0.0.0.0", "::", "192.168.0.7", "example.org"):
        with pytest.raises(ParameterError, match="--i-know"):
            Address(host).check()
        Address(host, i_know=True).check()
    for host in ("127.0.0.1", "localhost", "::1", "127.3.2.1"):
        Address(host).check()
    # On Windows another program could take the port over.
    stands_for = socket.SO_KEEPALIVE
    monkeypatch.setattr(socket, "SO_EXCLUSIVEADDRUSE", stands_for, raising=False)
    with Address("127.0.0.1", 0).listen() as listening:
        assert listening.getsockopt(socket.SOL_SOCKET, stands_for)
        assert not listening.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR)


STATIC = Path(biglp.__file__).parent / "_labelling" / "page"
BANNED = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|srcdoc"


def test_the_page_makes_no_html_and_no_code_and_loads_nothing_from_elsewhere():
    files = [path for path in STATIC.rglob("*") if path.is_file()]
    assert len(files) > 10
    for path in files:
        text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?://|@import|url\(", text), path
        if path.suffix == ".js":
            assert not re.search(BANNED, text), path
            for imported in re.findall(r'from "([^"]+)"', text):
                assert (path.parent / imported).is_file(), imported
    text = (STATIC / "index.html").read_text(encoding="utf-8")
    assert not re.search(r"<style|\sstyle=|\son\w+=", text)
    assert re.findall(r"<script[^>]*>(.*?)</script>", text, re.DOTALL) == [""]
    for asked in re.findall(r'(?:src|href)="/static/([^"]+)"', text):
        assert (STATIC / asked).is_file(), asked
