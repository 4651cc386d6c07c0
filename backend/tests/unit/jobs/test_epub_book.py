"""A book that is read and heard: each sentence of the text names its part of the sound, and the
parts follow each other without a gap."""

from __future__ import annotations

import io
import posixpath
import zipfile
from itertools import pairwise
from pathlib import Path
from xml.etree.ElementTree import Element

import av
import numpy as np
import pytest
from defusedxml import ElementTree
from PIL import Image

from cantata.contract.data.errors import InvalidRequest
from cantata.documents.epub import read_epub
from cantata.jobs.job import Job, JobLimits, JobSentence, NewJob, SoundShape, SpokenSentence
from cantata.jobs.results import ResultOptions, check_results, write_results
from cantata.jobs.store import JobStore

RATE = 16_000
PACKAGE = "EPUB/package.opf"
SENTENCES = (
    JobSentence(0, 0, "# The *Sea* & Sky", begins=True),
    JobSentence(1, 0, "It is wide.", pause_s=0.8),
    JobSentence(2, 0, "Nobody has [pause 1s] asked\x01."),
    JobSentence(3, 0, "\u4e00", pause_s=0.35),
    JobSentence(4, 0, "Is 3 < 4?", "Alice", pause_s=0.35),
    JobSentence(5, 1, "...", begins=True),
    JobSentence(6, 2, "The end.", begins=True),
)
UNSPOKEN = (3, 5)
SECONDS = 0.5


def draw_cover() -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (64, 64), (10, 20, 200)).save(file, "JPEG")
    return file.getvalue()


async def make_book(
    folder: Path, channels: int = 1, tags: tuple[tuple[str, str], ...] = ()
) -> Path:
    store, shape = JobStore(folder, JobLimits()), SoundShape(RATE, channels)
    new = NewJob(
        "", {}, shape, "A <Book>", "Ann & Bob", "en-GB", ("The Sea & Sky", "", "End"), SENTENCES
    )
    job: Job = await store.add(new)
    (store.find_folder(job.id) / "cover").write_bytes(draw_cover())
    tone = np.sin(np.arange(round(SECONDS * RATE)) / 10)[:, None].repeat(shape.channels, 1)
    for sentence in SENTENCES:
        spoken = SpokenSentence((tone * 9_000).astype(np.int16), ())
        if sentence.number in UNSPOKEN:
            spoken = SpokenSentence(np.zeros((0, shape.channels), np.int16), (), "cannot")
        await store.keep_sound(job.id, shape, sentence, spoken)
    (file,) = await write_results(store, await store.find(job.id), ResultOptions("epub", tags=tags))
    path = store.find_results(job.id) / file.name
    assert (file.name, file.media_type) == ("a-book.epub", "application/epub+zip")
    assert path.stat().st_size == file.size
    assert [one.name for one in path.parent.iterdir()] == [file.name]
    await store.close()
    return path


def parse(archive: zipfile.ZipFile, name: str) -> Element:
    return ElementTree.fromstring(archive.read(name))


def find_all(root: Element, name: str) -> list[Element]:
    return [one for one in root.iter() if one.tag.rpartition("}")[2] == name]


def read_clip(audio: Element) -> tuple[float, float]:
    start, end = (audio.get(name, "") for name in ("clipBegin", "clipEnd"))
    assert start.endswith("s")
    assert end.endswith("s")
    return float(start[:-1]), float(end[:-1])


@pytest.fixture
async def book(tmp_path: Path) -> Path:
    return await make_book(tmp_path, tags=(("comment", "made by a machine"),))


def test_everything_in_the_file_is_declared_and_the_other_way_round(book: Path) -> None:
    with zipfile.ZipFile(book) as archive:
        first = archive.infolist()[0]
        assert (first.filename, first.compress_type) == ("mimetype", zipfile.ZIP_STORED)
        assert archive.read("mimetype") == b"application/epub+zip"
        assert book.read_bytes()[38:58] == b"application/epub+zip", "readers look there"
        package = parse(archive, PACKAGE)
        items = {one.attrib["id"]: one for one in find_all(package, "item")}
        declared = {posixpath.join("EPUB", one.attrib["href"]) for one in items.values()}
        whole = {*declared, PACKAGE, "mimetype", "META-INF/container.xml"}
        assert sorted(archive.namelist()) == sorted(whole)
        spine = [items[one.attrib["idref"]] for one in find_all(package, "itemref")]
        assert len(spine) == 3
        assert [one.get("media-overlay") is not None for one in spine] == [True, False, True]
        (nav,) = (one for one in items.values() if one.get("properties") == "nav")
        links = find_all(parse(archive, f"EPUB/{nav.attrib['href']}"), "a")
        assert [one.attrib["href"] for one in links] == [one.attrib["href"] for one in spine]
        assert [one.text for one in links] == ["The Sea & Sky", "Chapter 2", "End"]


def test_each_sentence_names_its_part_of_the_sound(book: Path) -> None:
    with zipfile.ZipFile(book) as archive:
        page = parse(archive, "EPUB/c01.xhtml")
        texts = {one.attrib["id"]: one.text for one in page.iter() if "id" in one.attrib}
        overlay = parse(archive, "EPUB/c01.smil")
        told, clips = [], []
        for par in find_all(overlay, "par"):
            (text,), (audio,) = find_all(par, "text"), find_all(par, "audio")
            name, _, anchor = text.attrib["src"].partition("#")
            assert (name, audio.attrib["src"]) == ("c01.xhtml", "c01.m4a")
            told.append(texts[anchor])
            clips.append(read_clip(audio))
        # What cannot be spoken stands in the text, and has no sound.
        assert told == ["The Sea & Sky", "It is wide.", "Nobody has asked.", "Is 3 < 4?"]
        assert "\u4e00" in texts.values()
        # A mark waits in the silence before the next sentence.
        ends = [0.5 + 0.8, 1.8, 2.3 + 0.35 + 0.35, 3.5]
        assert [end for _, end in clips] == pytest.approx(ends, abs=0.001)
        assert clips[0][0] == 0.0
        assert all(before[1] == after[0] for before, after in pairwise(clips))
        with av.open(io.BytesIO(archive.read("EPUB/c01.m4a")), "r") as sound:
            heard_s = sum(one.samples for one in sound.decode(audio=0)) / RATE
            assert "made by a machine" in sound.metadata.values()
        assert heard_s == pytest.approx(clips[-1][1], abs=0.1)
        assert find_all(parse(archive, "EPUB/c02.xhtml"), "span")[0].text == "..."


def test_the_package_tells_lengths_and_who_made_it(book: Path) -> None:
    with zipfile.ZipFile(book) as archive:
        package = parse(archive, PACKAGE)
    metas = {
        (one.attrib["property"], one.get("refines")): one.text for one in find_all(package, "meta")
    }
    lengths = {key: value for key, value in metas.items() if key[0] == "media:duration"}
    assert lengths == {
        ("media:duration", None): "4.000s",
        ("media:duration", "#c01-smil"): "3.500s",
        ("media:duration", "#c03-smil"): "0.500s",
    }
    assert metas["media:narrator", None] == "A synthetic voice"
    assert metas["media:active-class", None] == "spoken"
    told = [find_all(package, name)[0].text for name in ("title", "creator", "language")]
    assert told == ["A <Book>", "Ann & Bob", "en-GB"]


def test_another_reader_finds_the_text_of_the_input(book: Path) -> None:
    document = read_epub(book)
    assert [one.title for one in document.chapters] == ["The Sea & Sky", "Chapter 2", "End"]
    assert document.chapters[0].paragraphs == (
        "The Sea & Sky",
        "It is wide. Nobody has asked.",
        "\u4e00",
        "Alice: Is 3 < 4?",
    )
    assert document.cover


async def test_the_same_book_is_the_same_file(tmp_path: Path) -> None:
    contents = []
    for name in ("one", "two"):
        with zipfile.ZipFile(await make_book(tmp_path / name, 2)) as archive:
            contents.append({one: archive.read(one) for one in archive.namelist()})
    for content in contents:
        lines = content[PACKAGE].splitlines()
        content[PACKAGE] = b"\n".join(one for one in lines if b"dcterms:modified" not in one)
    assert contents[0] == contents[1]
    assert b"narrator" not in contents[0][PACKAGE], "nothing is told where files say nothing"


def test_what_an_epub_cannot_have_is_refused() -> None:
    check_results(ResultOptions("epub"), SoundShape(RATE, 1))
    for options, reason in (
        (ResultOptions("epub", captions="srt"), "captions"),
        (ResultOptions("epub", RATE), "sample_rate"),
    ):
        with pytest.raises(InvalidRequest, match=reason):
            check_results(options, SoundShape(RATE, 1))
