"""The comparison with peers, end to end on few rows."""

from cli_tools import done
from pages import check_images, check_page
from paper import pages as data
from paper import peers
from paper.pages import Output
from paper.peers import Limits, Outcome


def test_a_stopped_peer_is_not_run_on_more_rows(tmp_path, monkeypatch):
    asked = []

    def pretend(method, problem, limits):
        asked.append((method, problem.n_rows))
        if method == "5-NN":
            return Outcome(method, problem.n_rows, problem.data, why="more than 300 s")
        return Outcome(method, problem.n_rows, problem.data, 0.1, 0.1, 2**20, 0.9)

    monkeypatch.delenv(data.VARIABLE, raising=False)
    monkeypatch.setattr(peers, "run_one", pretend)
    done("peers", "--sizes", "200,400", "-o", tmp_path, program="paper")
    assert ("5-NN", 200) in asked
    assert ("5-NN", 400) not in asked
    page = (tmp_path / "peers.md").read_text()
    assert "not run: more than 300 s at 200 rows" in page
    assert "simulated, 100 features" in page
    check_images(tmp_path, check_page(page))


def test_peers_label_real_rows_within_their_limits(tmp_path, monkeypatch):
    """Two methods in real processes, on simulated rows."""
    monkeypatch.delenv(data.VARIABLE, raising=False)
    chosen = {name: peers.METHODS[name] for name in ("biglp", "5-NN")}
    monkeypatch.setattr(peers, "METHODS", chosen)
    found = peers.run([300], Limits(), Output(tmp_path), print)
    assert [outcome.why for outcome in found] == ["", ""]
    assert all(outcome.accuracy > 0.2 and outcome.peak > 2**20 for outcome in found)
    assert all(outcome.seconds > 0 for outcome in found)
