// The pictures of this visit: a few are drawn at a time, the others wait. Nothing of them is stored.

import { Drawing, DrawingState } from "./drawing.js";

const AT_ONCE = 4; // each holds a connection, and browsers open six to a server
const KEPT = 60; // pictures, which take memory

/**
 * Dispatches "change" when pictures come or go or one changes its state, and "refused" (detail: the
 * SpeechError) when the server does not take a request as it is.
 */
export class Studio extends EventTarget {
  /** Newest first. */
  drawings = [];
  #server;
  #queue = []; // in the order in which they were asked for

  constructor(server) {
    super();
    this.#server = server;
  }

  /** Those in this state. */
  having(state) {
    return this.drawings.filter((drawing) => drawing.state === state);
  }

  /**
   * Draws pictures, each with a request of its own and the seed after the one before.
   * @param {object} request as `Drawing` takes it
   */
  draw(request, count = 1) {
    const batch = Array.from({ length: count }, (_, number) => {
      return new Drawing(this.#server, { ...request, seed: request.seed + number });
    });
    for (const drawing of batch) {
      let { state } = drawing;
      drawing.addEventListener("change", () => {
        if (drawing.state === state) return;
        state = drawing.state;
        this.#follow(drawing, batch);
      });
    }
    this.drawings = [...batch, ...this.drawings];
    this.#queue.push(...batch);
    this.#forget();
    this.#next();
  }

  cancelAll() {
    // Those that wait go first: else each end would start one.
    for (const state of [DrawingState.WAITING, DrawingState.DRAWING]) {
      for (const drawing of this.having(state)) drawing.cancel();
    }
  }

  remove(drawing) {
    drawing.cancel();
    this.drawings = this.drawings.filter((one) => one !== drawing);
    this.#tell("change");
  }

  /** Removes all that are over. */
  clear() {
    this.drawings = this.drawings.filter(({ over }) => !over);
    this.#tell("change");
  }

  #follow(drawing, batch) {
    if (drawing.state === DrawingState.FAILED && isRefusal(drawing.error)) {
      // The others ask for the same.
      const dropped = batch.filter((one) => one === drawing || one.state === DrawingState.WAITING);
      this.#queue = this.#queue.filter((one) => !dropped.includes(one));
      for (const one of dropped) one.cancel();
      this.drawings = this.drawings.filter((one) => !dropped.includes(one));
      this.#tell("refused", drawing.error);
    }
    this.#next();
  }

  // Starts what may start.
  #next() {
    while (this.#queue.length > 0 && this.having(DrawingState.DRAWING).length < AT_ONCE) {
      const drawing = this.#queue.shift();
      if (drawing.state === DrawingState.WAITING) void drawing.start();
    }
    this.#tell("change");
  }

  #forget() {
    const over = this.drawings.filter((drawing) => drawing.over);
    const most = Math.max(0, KEPT - (this.drawings.length - over.length));
    const gone = new Set(over.slice(most));
    this.drawings = this.drawings.filter((drawing) => !gone.has(drawing));
  }

  #tell(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }
}

/** Whether the request itself is at fault, so that trying again changes nothing. */
function isRefusal({ status }) {
  return status !== null && status >= 400 && status < 500 && status !== 429;
}
