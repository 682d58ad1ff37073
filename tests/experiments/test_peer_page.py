"""What the page on peers says."""

from paper import peers as peer_page
from paper.peers import Outcome


def test_the_verdict_needs_speed_and_accuracy():
    def pair(seconds, accuracy):
        n = peer_page.REFERENCE_ROWS
        ours = Outcome(peer_page.OURS, n, "MNIST", 1.0, 1.0, 1, 0.9)
        return [ours, Outcome(peer_page.REFERENCE, n, "MNIST", seconds, seconds, 1, accuracy)]

    assert peer_page.verdict(pair(25.0, 0.9))[0] is True
    assert peer_page.verdict(pair(19.0, 0.9))[0] is False
    assert peer_page.verdict(pair(25.0, 0.91))[0] is False
    assert peer_page.verdict([])[0] is None
