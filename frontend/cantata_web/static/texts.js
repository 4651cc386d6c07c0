// The page's texts, numbers and lists in its language.

/** Of the page: the server writes it into the markup. */
export const language = globalThis.document?.documentElement.lang || "en";
const plurals = new Intl.PluralRules(language);
const formats = new Map(); // by digits: making one takes longer than using it

/**
 * The text with its `{names}` filled in; numbers as the language writes them. In other languages
 * than English the server has put the translation in its place, so it must be literal.
 * @param {string | {one, other}} text or its forms, of which `values.count` chooses
 */
export function t(text, values = {}) {
  const form = text.other === undefined ? text : (text[plurals.select(values.count)] ?? text.other);
  return form.replace(/\{(\w+)\}/g, (_, name) => {
    const value = values[name];
    return typeof value === "number" ? decimal(value) : value;
  });
}

/** @param {number} [digits] after the point; up to three if it is left out */
export function decimal(value, digits) {
  if (!formats.has(digits)) {
    const exactly = { minimumFractionDigits: digits, maximumFractionDigits: digits };
    formats.set(digits, new Intl.NumberFormat(language, exactly));
  }
  return formats.get(digits).format(value);
}

/** "one, two and three" */
export function listed(words) {
  return new Intl.ListFormat(language === "en" ? "en-GB" : language).format(words);
}
