"""Trains the letter-to-sound network on the lexicon and prints its phone error rate.

Run as `python -m cantata_models.solo.training.letter_to_sound` (about ten minutes on one core).
A hash of the stem holds out every twentieth word from training, so "smith's" and "smith" are always
on the same side. The error rate is the edit distance over phones against the lexicon's first
pronunciation. It is measured on held-out words with the shipped NumPy code and rounded weights.
"""

from __future__ import annotations

import argparse
import random
import time
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from cantata_layers.english.lexicon import load_lexicon
from cantata_models.solo.text.letter_to_sound import (
    ALPHABET,
    LAYERS,
    WEIGHTS_FILE,
    LetterToSound,
    phone_errors,
)
from cantata_models.solo.training.letter_alignment import Chunk, Pair, align, train_table

HELD_OUT_SHARE = 20
ALIGNMENT_SAMPLE = 20_000
MIN_CHUNK_COUNT = 40
"""Words with rarer chunks are excluded; nearly all are misaligned abbreviations."""


def is_held_out(word: str) -> bool:
    """Whether a lexicon word belongs to the held-out twentieth."""
    stem = word.removesuffix("'s").removesuffix("s'")
    return zlib.crc32(stem.encode()) % HELD_OUT_SHARE == 0


def lexicon_pairs() -> list[Pair]:
    """Returns the words of at least two letters, all in `ALPHABET`."""
    return [
        (word, phones)
        for word, phones in load_lexicon().items()
        if len(word) > 1 and set(word) <= set(ALPHABET)
    ]


class LetterNetwork(nn.Module):
    """Letters (B, T) to logits over chunks (B, T, C)."""

    def __init__(self, outputs: int, *, embedding: int, hidden: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(ALPHABET), embedding)
        self.gru = nn.GRU(
            embedding, hidden, num_layers=LAYERS, bidirectional=True, batch_first=True, dropout=0.2
        )
        self.dropout = nn.Dropout(0.2)
        self.output = nn.Linear(2 * hidden, outputs)

    def forward(self, letters: Tensor) -> Tensor:
        states, _ = self.gru(self.embedding(letters))
        logits: Tensor = self.output(self.dropout(states))
        return logits


Example = tuple[list[int], list[int]]


def make_examples(pairs: Sequence[Pair]) -> tuple[list[Example], list[Chunk]]:
    """Aligns the words; returns letter and chunk indices, and the chunks in index order."""
    sample = random.sample(list(pairs), ALIGNMENT_SAMPLE)
    table = train_table(sample)
    aligned = [(letters, align(letters, phones, table)) for letters, phones in pairs]
    counts = Counter(chunk for _, chunks in aligned for chunk in chunks or ())
    chunks = sorted(chunk for chunk, count in counts.items() if count >= MIN_CHUNK_COUNT)
    index = {chunk: number for number, chunk in enumerate(chunks)}
    examples = [
        ([ALPHABET.index(letter) for letter in letters], [index[chunk] for chunk in path])
        for letters, path in aligned
        if path is not None and all(chunk in index for chunk in path)
    ]
    return examples, chunks


def batches(examples: Sequence[Example], size: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Yields batches of words of equal length, so that no padding is needed."""
    by_length: dict[int, list[Example]] = defaultdict(list)
    for example in examples:
        by_length[len(example[0])].append(example)
    grouped: list[list[Example]] = []
    for group in by_length.values():
        random.shuffle(group)
        grouped.extend(group[start : start + size] for start in range(0, len(group), size))
    random.shuffle(grouped)
    for batch in grouped:
        letters, chunks = zip(*batch, strict=True)
        yield torch.tensor(letters), torch.tensor(chunks)


def train(
    network: LetterNetwork, examples: Sequence[Example], *, epochs: int, batch_size: int
) -> None:
    """Minimises cross-entropy with AdamW and a one-cycle learning rate. Prints each epoch."""
    steps = epochs * sum(1 for _ in batches(examples, batch_size))
    optimizer = torch.optim.AdamW(network.parameters(), lr=4e-3, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=4e-3, total_steps=steps, pct_start=0.1
    )
    started = time.monotonic()
    for epoch in range(epochs):
        total, count = 0.0, 0
        for letters, chunks in batches(examples, batch_size):
            loss = nn.functional.cross_entropy(network(letters).flatten(0, 1), chunks.flatten())
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            total, count = total + loss.item(), count + 1
        seconds = time.monotonic() - started
        print(f"epoch {epoch + 1}/{epochs}: loss {total / count:.4f}, {seconds:.0f} s", flush=True)


def save(network: LetterNetwork, chunks: Sequence[Chunk], path: Path) -> None:
    """Writes float16 weights with the chunk names in the metadata."""
    weights = {key: value.half().contiguous() for key, value in network.state_dict().items()}
    save_file(weights, str(path), metadata={"chunks": ",".join(" ".join(c) for c in chunks)})


def phone_error_rate(network: LetterToSound, pairs: Sequence[Pair]) -> float:
    """Returns edit distance over reference length, in percent."""
    errors = sum(phone_errors(phones, network(word)) for word, phones in pairs)
    return 100.0 * errors / sum(len(phones) for _, phones in pairs)


def main() -> None:
    """Trains, saves and evaluates."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=14)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--evaluate-only", action="store_true")
    options = parser.parse_args()
    random.seed(0)
    torch.manual_seed(0)
    pairs = lexicon_pairs()
    held_out = [pair for pair in pairs if is_held_out(pair[0])]
    if not options.evaluate_only:
        examples, chunks = make_examples([pair for pair in pairs if not is_held_out(pair[0])])
        print(f"{len(examples)} words to train on, {len(chunks)} chunks", flush=True)
        network = LetterNetwork(len(chunks), embedding=48, hidden=128)
        train(network, examples, epochs=options.epochs, batch_size=options.batch_size)
        save(network, chunks, WEIGHTS_FILE)
    rate = phone_error_rate(LetterToSound.load(), held_out)
    print(f"held-out phone error rate: {rate:.2f} % ({len(held_out)} words)")


if __name__ == "__main__":
    main()
