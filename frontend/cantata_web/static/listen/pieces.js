// A text, cut so that each of its words can be shown and chosen by itself.

const BETWEEN = /^[\s\p{P}\p{S}]*$/u; // words: no letters, no digits

/**
 * Pieces that together are the text.
 * @param {string} text
 * @param {Part[]} parts its words or sentences, in order
 * @returns {{text: string, part: Part | null}[]} of no part: what stands between them. If the parts
 *   are not the text's, they follow each other with spaces between them, and no part is lost
 */
export function cutText(text, parts) {
  const pieces = [];
  let at = 0;
  const add = (piece, part) => {
    if (piece !== "") pieces.push({ text: piece, part });
  };
  for (const part of parts) {
    const from = text.indexOf(part.text, at);
    const between = text.slice(at, Math.max(from, at));
    if (from < 0 || !BETWEEN.test(between)) return joinParts(parts);
    add(between, null);
    add(part.text, part);
    at = from + part.text.length;
  }
  const rest = text.slice(at);
  if (parts.length > 0 && !BETWEEN.test(rest)) return joinParts(parts);
  add(rest, null);
  return pieces;
}

function joinParts(parts) {
  return parts.flatMap((part, place) => {
    const piece = { text: part.text, part };
    return place === 0 ? [piece] : [{ text: " ", part: null }, piece];
  });
}
