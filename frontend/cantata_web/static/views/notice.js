// The server's state, at the head of every tab. Once it has been ready, a loss is a bar that stays
// in sight when the page is scrolled.

export class ServerNotice {
  #element;
  #wasReady = false;

  constructor(element) {
    this.#element = element;
  }

  show(ready, sentence) {
    this.#wasReady ||= ready;
    this.#element.dataset.ready = String(ready);
    this.#element.dataset.lost = String(this.#wasReady && !ready);
    const text = this.#element.firstElementChild;
    if (text.textContent !== sentence) text.textContent = sentence;
  }
}
