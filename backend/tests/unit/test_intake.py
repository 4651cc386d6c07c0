"""The order in which requests are taken in."""

from cantata.scheduling.intake import LEAD_PERIODS, Intake

PERIOD_S = 0.1
LEAD_S = LEAD_PERIODS * PERIOD_S


def waiting(*requests: tuple[str, float, float | None, bool]) -> Intake[str]:
    """Of (name, when it came, when its listener runs dry, whether it is a file render)."""
    intake: Intake[str] = Intake(PERIOD_S)
    for name, now_s, runs_dry_s, batch in requests:
        intake.put(name, name.upper(), now_s, runs_dry_s=runs_dry_s, batch=batch)
    return intake


def order(intake: Intake[str]) -> list[str]:
    return [str(intake.take()) for _ in range(len(intake))]


def test_new_requests_keep_their_order() -> None:
    assert order(waiting(("b", 1.0, None, False), ("a", 2.0, None, False))) == ["B", "A"]


def test_a_next_piece_waits_for_new_requests_while_its_listener_has_sound() -> None:
    ahead, short = 1.0 + LEAD_S + 0.5, 1.0 + LEAD_S - 0.1
    intake = waiting(
        ("ahead", 1.0, ahead, False), ("short", 1.0, short, False), ("new", 1.0, None, False)
    )
    assert order(intake) == ["SHORT", "NEW", "AHEAD"]


def test_file_renders_come_last() -> None:
    intake = waiting(
        ("file", 1.0, None, True), ("new", 9.0, None, False), ("file's next", 1.0, 1.0, True)
    )
    assert order(intake) == ["NEW", "FILE", "FILE'S NEXT"]


def test_one_can_be_taken_out_by_name() -> None:
    intake = waiting(("a", 1.0, None, False), ("b", 2.0, None, False))
    assert intake.take("b") == "B"
    assert intake.take("b") is None
    assert order(intake) == ["A"]
    assert intake.take() is None
