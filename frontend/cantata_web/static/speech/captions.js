// The words of a text as passages for subtitles.

const MAX_CHARACTERS = 84; // two lines of 42, as is usual
const MAX_GAP_SECONDS = 1;
const SENTENCE_END = /[.!?…。！？\n]/u;

/**
 * Sentences, cut where they are long or pause.
 * @param {string} text
 * @param {{from, to, start, end}[]} words positions in the text, seconds
 * @returns {{text, start, end}[]}
 */
export function passagesOf(text, words) {
  const passages = [];
  let first = 0;
  words.forEach((word, index) => {
    const next = words[index + 1];
    if (next !== undefined && !endsPassage(text, words[first], word, next)) return;
    const from = first === 0 ? 0 : words[first].from;
    const said = text.slice(from, next?.from ?? text.length);
    passages.push({ text: said, start: words[first].start, end: word.end });
    first = index + 1;
  });
  return passages;
}

function endsPassage(text, first, word, next) {
  return (
    SENTENCE_END.test(text.slice(word.to, next.from)) ||
    next.to - first.from > MAX_CHARACTERS ||
    next.start - word.end > MAX_GAP_SECONDS
  );
}
