"""The order in which requests are taken in."""

from cantata.scheduling.edf_queue import LEAD_PERIODS, EdfQueue

PERIOD_S = 0.1
LEAD_S = LEAD_PERIODS * PERIOD_S


def waiting(*requests: tuple[str, float, float | None, bool]) -> EdfQueue[str]:
    """Of (name, when it came, when its listener runs dry, whether it is a file render)."""
    queue: EdfQueue[str] = EdfQueue(PERIOD_S)
    for name, now_s, playout_deadline_s, batch in requests:
        queue.put(name, name.upper(), now_s, playout_deadline_s=playout_deadline_s, batch=batch)
    return queue


def order(queue: EdfQueue[str]) -> list[str]:
    return [str(queue.take()) for _ in range(len(queue))]


def test_new_requests_keep_their_order() -> None:
    assert order(waiting(("b", 1.0, None, False), ("a", 2.0, None, False))) == ["B", "A"]


def test_a_next_piece_waits_for_new_requests_while_its_listener_has_sound() -> None:
    ahead, short = 1.0 + LEAD_S + 0.5, 1.0 + LEAD_S - 0.1
    queue = waiting(
        ("ahead", 1.0, ahead, False), ("short", 1.0, short, False), ("new", 1.0, None, False)
    )
    assert order(queue) == ["SHORT", "NEW", "AHEAD"]


def test_file_renders_come_last() -> None:
    queue = waiting(
        ("file", 1.0, None, True), ("new", 9.0, None, False), ("file's next", 1.0, 1.0, True)
    )
    assert order(queue) == ["NEW", "FILE", "FILE'S NEXT"]


def test_one_can_be_taken_out_by_name() -> None:
    queue = waiting(("a", 1.0, None, False), ("b", 2.0, None, False))
    assert queue.take("b") == "B"
    assert queue.take("b") is None
    assert order(queue) == ["A"]
    assert queue.take() is None
