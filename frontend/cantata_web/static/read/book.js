// A text as the reader has it: one string, its blocks, its sentences, and the pieces that are spoken.

const MAX_BLOCK = 3_000; // characters: a text may have no paragraphs at all
const PIECE = 400; // characters that are asked for at a time
const SPOKEN = /[\p{L}\p{N}]/u;
const BETWEEN = "\n\n";
const GAPS = { heading: 0.7, text: 0.35 }; // seconds of silence after a block

export class Book {
  /** Blocks of the text: {kind, from, to}; kind is "heading" or "text". */
  blocks = [];
  #segmenter = new Intl.Segmenter(undefined, { granularity: "sentence" });
  #block = null; // whose sentences were asked for last
  #sentences = [];

  /**
   * @param {string} name
   * @param {{kind, text}[]} blocks without line breaks
   */
  constructor(name, blocks) {
    this.name = name;
    let at = 0;
    const parts = blocks.flatMap(({ kind, text }) => this.#split(kind, text));
    for (const { kind, text } of parts) {
      this.blocks.push({ kind, from: at, to: at + text.length });
      at += text.length + BETWEEN.length;
    }
    this.text = parts.map(({ text }) => text).join(BETWEEN);
  }

  get length() {
    return this.text.length;
  }

  /** The text with marks at its headings, by which chapters are known. */
  get markdown() {
    const marks = { heading: "# ", text: "" };
    return this.blocks
      .map(({ kind, from, to }) => marks[kind] + this.text.slice(from, to))
      .join(BETWEEN);
  }

  /** The index of the block that holds a place, or that comes next. */
  indexAt(at) {
    let [low, high] = [0, this.blocks.length - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.blocks[middle].to <= at) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The sentence that holds a place, or that comes next: {from, to}. */
  sentenceAt(at) {
    const sentences = this.#sentencesOf(this.blocks[this.indexAt(at)]);
    return sentences.find(({ to }) => to > at) ?? sentences.at(-1);
  }

  /** Where the sentence before or after this one begins. @param {-1 | 1} step */
  stepFrom(at, step) {
    const { from, to } = this.sentenceAt(at);
    if (step > 0) return Math.min(this.sentenceAt(to).from, this.length - 1);
    return this.sentenceAt(Math.max(0, from - BETWEEN.length - 1)).from;
  }

  /** Where the word begins that holds a place. */
  wordAt(at) {
    const { from } = this.blocks[this.indexAt(at)];
    const before = this.text.slice(from, at).match(/[\p{L}\p{M}\p{N}'’-]*$/u);
    return Math.max(from, at - before[0].length);
  }

  /**
   * What is to be spoken next, whole sentences of one block: {from, to, text, gapSeconds}, or null
   * at the end.
   */
  pieceAt(at) {
    if (at >= this.length) return null;
    const block = this.blocks[this.indexAt(at)];
    const from = Math.max(at, block.from);
    const sentences = this.#sentencesOf(block).filter(({ to }) => to > from);
    const { to } = sentences.findLast((one) => one.to <= from + PIECE) ?? sentences[0];
    const text = this.text.slice(from, to);
    if (!SPOKEN.test(text)) return this.pieceAt(to === block.to ? to + BETWEEN.length : to);
    return { from, to, text, gapSeconds: to === block.to ? GAPS[block.kind] : 0 };
  }

  #sentencesOf(block) {
    if (block === this.#block) return this.#sentences;
    const text = this.text.slice(block.from, block.to);
    this.#block = block;
    this.#sentences = [...this.#segmenter.segment(text)].map(({ index, segment }) => ({
      from: block.from + index,
      to: block.from + index + segment.length,
    }));
    return this.#sentences;
  }

  #split(kind, text) {
    if (text.length <= MAX_BLOCK) return [{ kind, text }];
    const parts = [""];
    for (const { segment } of this.#segmenter.segment(text)) {
      // Text without any stop, a table maybe, is cut between words.
      for (const bit of segment.match(/[^]{1,2000}(?=\s|$)|[^]{1,2000}/g)) {
        if (parts.at(-1).length + bit.length > MAX_BLOCK / 2) parts.push("");
        parts[parts.length - 1] += bit;
      }
    }
    return parts.filter((part) => part.trim() !== "").map((part) => ({ kind, text: part.trim() }));
  }
}
