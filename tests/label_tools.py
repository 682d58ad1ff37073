"""A labelling session on small rows, and a client that is let in."""

import asyncio
import time
import uuid
from pathlib import Path

import httpx
import numpy as np

from biglp._jobs import FitJob
from biglp._labelling import Guard, Page, Session, Wanted

TOKEN = "a-token-of-more-than-thirty-two-letters"
HOST = "127.0.0.1:8000"
OWN = {"origin": f"http://{HOST}", "x-biglp": "1"}


def made_rows(n_rows=400, n_features=5, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, n_rows)
    centres = 6.0 * rng.normal(size=(n_classes, n_features))
    return (centres[truth] + rng.normal(size=(n_rows, n_features))).astype(np.float32), truth


def wanted(folder, inputs, **options):
    page = {
        name: options.pop(name)
        for name in ("show", "images", "shape", "classes")
        if name in options
    }
    labels = (*options.pop("labels", ()), str(folder / "answers.csv"))
    parameters = {"memory": "600MB", "random_state": 0, **options.pop("parameters", {})}
    names = (str(inputs),) if isinstance(inputs, (str, Path)) else tuple(map(str, inputs))
    job = FitJob(names, folder / "out", labels=labels, threads=1, parameters=parameters, **options)
    return Wanted(job, **page)


class Client:
    def __init__(self, app, headers=None):
        self.app, self.headers, self.cookies = app, headers or {}, httpx.Cookies()

    def request(self, method, path, **more):
        async def ask():
            transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
            base = f"http://{HOST}"
            async with httpx.AsyncClient(
                transport=transport, base_url=base, headers=self.headers, cookies=self.cookies
            ) as client:
                reply = await client.request(method, path, **more)
                self.cookies = client.cookies
                return reply

        return asyncio.run(ask())

    def get(self, path, **more):
        return self.request("GET", path, **more)

    def post(self, path, **more):
        return self.request("POST", path, **more)


def client_of(session):
    client = Client(Guard(Page(session).app(), TOKEN, (HOST,)), OWN)
    client.cookies.set(client.app.cookie, TOKEN)
    return client


def post(client, path, **given):
    reply = client.post(path, json={"answer": str(uuid.uuid4()), **given})
    assert reply.status_code == 200, reply.text
    return reply.json()


def wait_for(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.01)


def fitted(session):
    loop, answers = session.loop, session.answers
    wait_for(lambda: loop.fit is not None and loop.fit.version == answers.version)
    wait_for(lambda: loop.state == "ready" and not loop.fit.stale)
    assert loop.problem is None
    return loop.fit


def opened(want):
    session = Session(want)
    session.start()
    wait_for(lambda: session.loop.graph is not None or session.loop.problem is not None)
    assert session.loop.problem is None, session.loop.problem
    return session
