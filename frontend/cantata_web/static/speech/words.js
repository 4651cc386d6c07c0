// When words are heard, and their positions in the text.

export class WordTrack {
  #words;

  /** @param {object[]} words of another track */
  constructor(words = []) {
    this.#words = [...words];
  }

  /**
   * Adds the words of one message.
   * @param {{start, end, text_start, text_end}[]} words the server's: seconds from the first sample
   *   of the utterance, code points of the text that was sent
   * @param {string} sent the text that the offsets refer to
   * @param {number} base where `sent` begins in the listener's text, in UTF-16 units
   * @param {number} atSeconds when the utterance begins in the playback
   */
  add(words, { sent, base, atSeconds }) {
    const unit = unitOffsets(sent);
    for (const word of words) {
      this.#words.push({
        start: atSeconds + word.start,
        end: atSeconds + word.end,
        from: base + unit(word.text_start),
        to: base + unit(word.text_end),
        text: sent.slice(unit(word.text_start), unit(word.text_end)),
      });
    }
  }

  /** A track of the words that begin before a time. */
  before(seconds) {
    return new WordTrack(this.#words.filter((word) => word.start < seconds));
  }

  /** A track of the words that end after a time. */
  since(seconds) {
    return new WordTrack(this.#words.filter((word) => word.end > seconds));
  }

  get all() {
    return this.#words;
  }

  /** The word that is heard `seconds` into the playback, kept until the next one; or null. */
  at(seconds) {
    let [low, high] = [0, this.#words.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#words[middle].start <= seconds) low = middle + 1;
      else high = middle;
    }
    return this.#words[low - 1] ?? null;
  }
}

// The server counts code points, JavaScript UTF-16 units: they differ where a character takes two.
function unitOffsets(text) {
  if (!/[\ud800-\udbff]/.test(text)) return (offset) => offset;
  const units = [0];
  for (const character of text) units.push(units.at(-1) + character.length);
  return (offset) => units[offset];
}
