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
from biglp._labelling import Guard
from biglp._labelling.server import Address, kept_token
from label_tools import HOST, OWN, TOKEN, Client


async def inside(request):
    return PlainTextResponse("inside")


@pytest.fixture
def client():
    paths = [Route(path, inside, methods=["GET", "POST"]) for path in ("/", "/api/x")]
    app = Guard(Starlette(routes=paths), TOKEN, (HOST, "localhost:8000"))
    return Client(app)


@pytest.fixture
def known(client):
    client.cookies.set(client.app.cookie, TOKEN)
    return client


def test_the_token_is_swapped_for_a_cookie(client):
    reply = client.get(f"/?token={TOKEN}")
    assert reply.status_code == 303
    assert reply.headers["location"] == "/"
    cookie = reply.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert client.get("/").text == "inside"


def test_two_servers_of_one_machine_have_two_cookies(client):
    """Browsers send the cookies of 127.0.0.1 to all its ports."""
    other = Guard(Starlette(), "x" * 40, ("127.0.0.1:8001",))
    assert {client.app.cookie, other.cookie} == {"biglp-8000", "biglp-8001"}


@pytest.mark.parametrize("path", ["/", "/?token=", "/?token=wrong", f"/?token={TOKEN}x", "/api/x"])
def test_without_the_token(client, path):
    reply = client.get(path)
    assert reply.status_code == 403
    assert "token" in reply.text
    assert "set-cookie" not in reply.headers


def test_the_token_counts_on_the_first_page_only(client):
    assert client.get(f"/api/x?token={TOKEN}").status_code == 403


@pytest.mark.parametrize("cookie", ["wrong", "", TOKEN + "x", TOKEN[:-1]])
def test_a_wrong_cookie(client, cookie):
    client.cookies.set(client.app.cookie, cookie)
    assert client.get("/api/x").status_code == 403


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8000", "127.0.0.1", "127.0.0.1:9999", "", HOST + "."]
)
def test_a_foreign_host(known, host):
    assert known.get("/api/x", headers={"host": host}).status_code == 403
    assert known.get(f"/?token={TOKEN}", headers={"host": host}).status_code == 403


def test_its_own_hosts(known):
    assert known.get("/api/x", headers={"host": "LOCALHOST:8000"}).status_code == 200


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "null", "http://127.0.0.1:9999", f"ftp://{HOST}", f"http://x.{HOST}"],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_foreign_origin(known, origin, method):
    reply = known.request(method, "/api/x", headers={**OWN, "origin": origin}, json={})
    assert reply.status_code == 403


def test_several_headers_where_one_is_meant(known):
    """Which of them counts, programs do not agree on."""
    for extra in [("host", "evil.example"), ("origin", "http://evil.example")]:
        for twice in ([*OWN.items(), extra], [extra, *OWN.items()]):
            own = [] if extra[0] == "origin" else [("host", HOST)]
            assert known.get("/api/x", headers=[*own, *twice]).status_code == 403


def test_a_change_needs_origin_and_header(known):
    assert known.post("/api/x", json={}, headers=OWN).status_code == 200
    for missing in OWN:
        headers = {name: value for name, value in OWN.items() if name != missing}
        assert known.post("/api/x", json={}, headers=headers).status_code == 403


def test_a_request_that_another_site_has_made(known):
    headers = {"sec-fetch-site": "cross-site"}
    assert known.get("/api/x", headers=headers).status_code == 403


def test_a_request_that_is_too_large(known):
    reply = known.post("/api/x", content=b"x" * (5 << 20), headers=OWN)
    assert reply.status_code == 413


@pytest.mark.parametrize("path", ["/", "/api/x", "/?token=wrong", "/nothing"])
def test_every_answer_says_what_a_page_may_load(known, path):
    reply = known.get(path)
    policy = reply.headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "unsafe" not in policy
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert reply.headers["x-frame-options"] == "DENY"
    assert reply.headers["referrer-policy"] == "no-referrer"


def test_the_token_is_the_same_after_a_restart_and_nobody_elses(tmp_path):
    labels = tmp_path / "answers.csv"
    token = kept_token(labels)
    assert len(token) > 32
    assert kept_token(labels) == token
    file = tmp_path / ".answers.csv.token"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.chmod(0o644)  # then others may have read it
    assert kept_token(labels) != token
    assert kept_token(tmp_path / "others.csv") != kept_token(labels)


def test_the_token_is_the_same_where_files_have_no_rights(tmp_path, monkeypatch):
    token = kept_token(tmp_path / "answers.csv")
    (tmp_path / ".answers.csv.token").chmod(0o666)  # what Windows says of any file
    monkeypatch.delattr(os, "getuid")
    assert kept_token(tmp_path / "answers.csv") == token


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.0.7", "example.org"])
def test_other_machines_are_kept_out(host):
    with pytest.raises(ParameterError, match="--i-know"):
        Address(host).check()
    Address(host, i_know=True).check()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.3.2.1"])
def test_this_machine_is_let_in(host):
    Address(host).check()


def test_no_other_program_takes_the_port_over_on_windows(monkeypatch):
    stands_for = socket.SO_KEEPALIVE
    monkeypatch.setattr(socket, "SO_EXCLUSIVEADDRUSE", stands_for, raising=False)
    with Address("127.0.0.1", 0).listen() as listening:
        assert listening.getsockopt(socket.SOL_SOCKET, stands_for)
        assert not listening.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR)


STATIC = Path(biglp.__file__).parent / "_labelling" / "page"
FILES = sorted(path for path in STATIC.rglob("*") if path.is_file())
SCRIPTS = [path for path in FILES if path.suffix == ".js"]
NAMESPACE = "http://www.w3.org/2000/svg"


def named(path):
    return str(path.relative_to(STATIC))


@pytest.mark.parametrize("path", FILES, ids=named)
def test_files_are_short_and_load_nothing_from_elsewhere(path):
    text = path.read_text(encoding="utf-8").replace(NAMESPACE, "")
    assert len(text.splitlines()) <= 300
    assert not re.search(r"https?://|@import|url\(", text)


@pytest.mark.parametrize("path", SCRIPTS, ids=named)
def test_scripts_make_no_html_and_no_code(path):
    text = path.read_text(encoding="utf-8")
    banned = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|srcdoc"
    assert not re.search(banned, text)
    for imported in re.findall(r'from "([^"]+)"', text):
        assert (path.parent / imported).is_file(), imported


def test_the_page_has_no_script_or_style_of_its_own():
    text = (STATIC / "index.html").read_text(encoding="utf-8")
    assert not re.search(r"<style|\sstyle=|\son\w+=", text)
    assert re.findall(r"<script[^>]*>(.*?)</script>", text, re.DOTALL) == [""]
    for asked in re.findall(r'(?:src|href)="/static/([^"]+)"', text):
        assert (STATIC / asked).is_file(), asked
