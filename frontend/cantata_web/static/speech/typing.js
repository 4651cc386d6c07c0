// What to send of a text that is being typed: whole words as they are finished, and a commit at
// each clause end. Full stops are left to the server, which knows abbreviations.

const CLAUSE_END = /[,;:\u2014]["'\u2019\u201d)]*\s$|\n$/;
const MIN_WORDS = 3; // "Well," is spoken with what follows
const PARAGRAPH = /\n$/;

/**
 * Follows a text box. Of its `out`, `write(text)` and `commit()` are called in the order of the
 * text; `changed()` when words that were sent have been edited, which cannot be undone.
 */
export class TypedText {
  #value = "";
  #sent = 0; // up to where `#value` has been sent
  #base = 0; // where the text since the last commit begins
  #out;

  constructor(out) {
    this.#out = out;
  }

  /** Where the text that was sent since the last commit begins. */
  get base() {
    return this.#base;
  }

  /** Whether there are words that have not been committed. */
  get pending() {
    return this.#value.slice(this.#base).trim() !== "";
  }

  update(value) {
    if (!value.startsWith(this.#value.slice(0, this.#sent))) this.#edited(value);
    this.#value = value;
    for (const word of value.slice(this.#sent).match(/\s*\S+\s/g) ?? []) this.#write(word);
  }

  /** Sends the rest, finished or not, and has it spoken. */
  flush() {
    if (!this.pending) return;
    const rest = this.#value.slice(this.#sent);
    if (rest !== "") this.#send(rest);
    this.#commit();
  }

  // Sent text has been changed. A text with a different beginning is a new one.
  #edited(value) {
    if (this.#value.slice(this.#base, this.#sent).trim() !== "") this.#commit();
    const anew = value[0] !== this.#value[0];
    this.#sent = anew ? 0 : value.length;
    this.#base = this.#sent;
    if (!anew) this.#out.changed();
  }

  #write(word) {
    this.#send(word);
    const clause = this.#value.slice(this.#base, this.#sent);
    if (!CLAUSE_END.test(clause) || clause.trim() === "") return;
    const long = clause.trim().split(/\s+/).length >= MIN_WORDS;
    if (long || PARAGRAPH.test(clause)) this.#commit();
  }

  #send(text) {
    this.#sent += text.length;
    this.#out.write(text);
  }

  #commit() {
    this.#out.commit();
    this.#base = this.#sent;
  }
}
