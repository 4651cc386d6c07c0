"""A book in eight jobs, and which requests count as played without a gap."""

from __future__ import annotations

from cantata_bench.beside_jobs import JOBS, HeardBeside, count_gapless, make_book, report
from cantata_bench.results import ListenedRequest


def test_the_book_is_the_same_each_time_and_has_its_words() -> None:
    book = make_book(16_000)
    assert book == make_book(16_000)
    assert len(book) == JOBS
    assert 0.8 < sum(len(text.split()) for text in book) / 16_000 < 1.3
    assert [text.count("# Chapter") for text in book] == [2] * JOBS
    assert len({text.split("\n\n")[1] for text in book}) == JOBS


def test_a_gap_and_a_failure_count_against() -> None:
    played = ListenedRequest(outcome="spoken", sent_s=0, characters=1, underruns_s=(0.0, 0.0))
    late = played.model_copy(update={"underruns_s": (0.01, 0.0)})
    failed = ListenedRequest(outcome="failed", sent_s=0, characters=1)
    assert count_gapless([played, late, failed]) == 1
    told = report(HeardBeside((played,), (played, late), 5, 9.4, 2, (1 << 20, 3 << 20)))
    assert told.splitlines() == [
        "without a gap alone: 1 of 1",
        "beside 8 jobs: 1 of 2 (gaps of 10 ms)",
        "the jobs meanwhile: 5 sentences, 9 s of sound, 2 files written",
        "memory in MiB: 1, 3",
    ]
