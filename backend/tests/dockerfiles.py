"""Reads the images' Dockerfiles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCKERFILES = sorted((ROOT / "docker").glob("Dockerfile.*"))


@dataclass(frozen=True, slots=True)
class Step:
    """One instruction of a Dockerfile."""

    stage: int
    name: str
    rest: str

    @property
    def sources(self) -> list[str]:
        """A COPY's paths in the repository; none when it copies from another stage."""
        words = self.rest.split()
        copies = self.name == "COPY" and not words[0].startswith("--from=")
        return words[:-1] if copies else []


def steps(dockerfile: Path) -> Iterator[Step]:
    """A Dockerfile's instructions, each on one line."""
    lines = [line for line in dockerfile.read_text().splitlines() if not line.startswith("#")]
    stage = -1
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        name, _, rest = line.partition(" ")
        stage += name == "FROM"
        if name:
            yield Step(stage, name, rest.strip())


def last(image: Sequence[Step], name: str) -> str:
    """What an instruction says for the container: its last use, in the last stage."""
    return [step.rest for step in image if step.name == name and step.stage == image[-1].stage][-1]
