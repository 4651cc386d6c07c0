// What both sides have said, in the order in which they began.

const KEPT = 100; // turns that are shown
const REMEMBERED = 20; // of them, those that a new session is told

/** Dispatches "change". */
export class Transcript extends EventTarget {
  /** Oldest first: {id, role: "user" | "assistant" | "tool", text, partial, cut}. */
  turns = [];

  clear() {
    this.turns = [];
    this.#tell();
  }

  /** A turn begins. */
  begin(id, role) {
    if (this.find(id) !== undefined) return;
    this.turns.push({ id, role, text: "", partial: true, cut: false });
    this.turns.splice(0, this.turns.length - KEPT);
    this.#tell();
  }

  /** More of its words. */
  add(id, words) {
    this.#change(id, (turn) => (turn.text += words));
  }

  /** All of its words, if they are known. */
  complete(id, text) {
    this.#change(id, (turn) => {
      turn.text = text ?? turn.text;
      turn.partial = false;
    });
  }

  /** Its listener heard only a part of it. */
  cut(id) {
    this.#change(id, (turn) => Object.assign(turn, { cut: true, partial: false }));
  }

  /** It was not said after all. */
  remove(id) {
    this.turns = this.turns.filter((turn) => turn.id !== id);
    this.#tell();
  }

  /** No more comes of any turn: its connection is gone. */
  close() {
    for (const { id, partial } of [...this.turns]) if (partial) this.complete(id);
  }

  find(id) {
    return this.turns.find((turn) => turn.id === id);
  }

  /** The last turns as items of a new session. */
  get items() {
    return this.turns
      .filter(({ role, text, partial }) => role !== "tool" && text.trim() !== "" && !partial)
      .slice(-REMEMBERED)
      .map(({ role, text }) => ({
        type: "message",
        role,
        content: [{ type: role === "user" ? "input_text" : "output_text", text }],
      }));
  }

  #change(id, change) {
    const turn = this.find(id);
    if (turn === undefined) return;
    change(turn);
    this.#tell();
  }

  #tell() {
    this.dispatchEvent(new Event("change"));
  }
}
