"""What compiles is asked once, whatever threads come."""

import threading
import time

from biglp._compiled import compiled_once


def test_threads_wait_for_what_another_compiles():
    made = []

    @compiled_once
    def make(double):
        made.append(double)
        time.sleep(0.05)
        return object()

    found = []
    threads = [threading.Thread(target=lambda: found.append(make(True))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [True]
    assert len(set(map(id, found))) == 1
    assert make(False) is not found[0]
