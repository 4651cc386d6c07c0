// Screen readers speak changes of status lines. While the page itself speaks, they are silent; what
// has changed meanwhile is announced afterwards.

const LIVE = "[role='status']";

export class Hush {
  #root;
  #changed = new Set();
  #observer;

  constructor(root) {
    this.#root = root;
    this.#observer = new MutationObserver((changes) => this.#note(changes));
  }

  /** @param {boolean} on while sound is heard */
  set(on) {
    const politeness = on ? "off" : "polite";
    const lines = [...this.#root.querySelectorAll(LIVE)];
    if (lines.every((line) => line.ariaLive === politeness)) return;
    if (!on) this.#note(this.#observer.takeRecords());
    for (const line of lines) line.ariaLive = politeness;
    if (on) {
      this.#observer.observe(this.#root, { childList: true, characterData: true, subtree: true });
      return;
    }
    this.#observer.disconnect();
    const unread = [...this.#changed].map((line) => [line, line.textContent]);
    this.#changed.clear();
    queueMicrotask(() => {
      for (const [line, text] of unread) {
        // Put in again, so that it counts as a change. A line that has just changed is read anyway.
        if (line.textContent === text) line.replaceChildren(...line.childNodes);
      }
    });
  }

  #note(changes) {
    for (const { target } of changes) {
      const element = target instanceof Element ? target : target.parentElement;
      const line = element?.closest(LIVE);
      if (line) this.#changed.add(line);
    }
  }
}
