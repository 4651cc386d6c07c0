// Sound in another time at the same pitch, block by block: waveform-similarity overlap-add (Verhelst
// and Roelands, 1993). Each piece is taken where it best continues the one before it, near where it
// is due.

const HOP_SECONDS = 0.015;
const REACH_SECONDS = 0.008; // how far from there: a period of a low voice
const COARSE = 3; // samples between those that are compared first, and between the places

export class Stretch {
  /** Seconds of the sound in a second of the listener's. May change at any time. */
  rate = 1;
  #hop;
  #reach;
  #rise; // a piece's fade in; its fade out is the rest to one
  #held; // per channel: the input from `#from` on
  #heldFrames = 0;
  #from = 0;
  #due = 0; // where the next piece is due, in frames of the input
  #next = 0; // what continues the last piece
  #tails; // per channel: the last piece's second half, faded
  #made; // per channel: output that waits
  #left = 0; // frames of it
  #blocks;

  /**
   * @param {number} sampleRate Hz
   * @param {number} channels
   * @param {number} blockFrames of the input to ask for at a time
   */
  constructor(sampleRate, channels, blockFrames = 128) {
    this.#hop = Math.round(HOP_SECONDS * sampleRate);
    this.#reach = Math.round(REACH_SECONDS * sampleRate);
    const hop = this.#hop;
    this.#rise = Float32Array.from({ length: hop }, (_, i) => {
      return 0.5 - 0.5 * Math.cos((Math.PI * (i + 0.5)) / hop);
    });
    const room = 16 * hop + 4 * this.#reach;
    this.#held = lines(channels, room);
    this.#tails = lines(channels, hop);
    this.#made = lines(channels, hop);
    this.#blocks = lines(channels, blockFrames);
  }

  /** Fills `targets` (a Float32Array per channel); `source` fills blocks of the input like them. */
  render(targets, source) {
    const wanted = targets[0].length;
    let done = 0;
    while (done < wanted) {
      if (this.#left === 0) this.#makePiece(source);
      const count = Math.min(this.#left, wanted - done);
      const at = this.#hop - this.#left;
      targets.forEach((out, channel) => {
        out.set(this.#made[channel].subarray(at, at + count), done);
      });
      this.#left -= count;
      done += count;
    }
  }

  #makePiece(source) {
    const due = Math.round(this.#due);
    this.#pull(Math.max(due + this.#reach, this.#next) + 2 * this.#hop, source);
    const start = this.#bestNear(due) - this.#from;
    const hop = this.#hop;
    if (this.#next === 0) this.#beginWhole();
    this.#held.forEach((held, channel) => {
      const [made, tail] = [this.#made[channel], this.#tails[channel]];
      for (let i = 0; i < hop; i += 1) {
        const rise = this.#rise[i];
        made[i] = tail[i] + held[start + i] * rise;
        tail[i] = held[start + hop + i] * (1 - rise);
      }
    });
    this.#left = hop;
    this.#next = start + this.#from + hop;
    this.#due += hop * this.rate;
    this.#forget(Math.min(this.#next, Math.round(this.#due) - this.#reach));
  }

  // The first piece goes on from sound that was not stretched: it has no fade.
  #beginWhole() {
    this.#held.forEach((held, channel) => {
      this.#tails[channel].forEach((_, i, tail) => (tail[i] = held[i] * (1 - this.#rise[i])));
    });
  }

  // The start, near where it is due, of what is most like the continuation of the last piece.
  #bestNear(due) {
    const least = Math.max(-this.#reach, this.#from - due);
    let [best, likeness] = [0, this.#likeness(due)];
    const consider = (away) => {
      if (away < least || away > this.#reach) return;
      const found = this.#likeness(due + away);
      if (found > likeness) [best, likeness] = [away, found];
    };
    for (let away = COARSE; away <= this.#reach; away += COARSE) {
      consider(away);
      consider(-away);
    }
    const coarse = best;
    for (let away = 1; away < COARSE; away += 1) {
      consider(coarse + away);
      consider(coarse - away);
    }
    return due + best;
  }

  #likeness(start) {
    const held = this.#held[0];
    const [a, b] = [start - this.#from, this.#next - this.#from];
    let [product, power] = [0, 1e-9];
    for (let i = 0; i < 2 * this.#hop; i += COARSE) {
      product += held[a + i] * held[b + i];
      power += held[a + i] * held[a + i];
    }
    return product / Math.sqrt(power);
  }

  #pull(until, source) {
    while (this.#from + this.#heldFrames < until) {
      source(this.#blocks);
      const count = this.#blocks[0].length;
      if (this.#heldFrames + count > this.#held[0].length) this.#grow();
      this.#held.forEach((held, channel) => held.set(this.#blocks[channel], this.#heldFrames));
      this.#heldFrames += count;
    }
  }

  #grow() {
    this.#held = this.#held.map((held) => {
      const longer = new Float32Array(2 * held.length);
      longer.set(held);
      return longer;
    });
  }

  #forget(before) {
    const drop = Math.min(Math.max(0, before - this.#from), this.#heldFrames);
    for (const held of this.#held) held.copyWithin(0, drop, this.#heldFrames);
    this.#from += drop;
    this.#heldFrames -= drop;
  }
}

function lines(channels, frames) {
  return Array.from({ length: channels }, () => new Float32Array(frames));
}
