// How long a text takes to be read aloud at the usual speed, by how long its parts took so far.

const USUAL = 0.065; // seconds a character

export class Pace {
  #characters = 0;
  #seconds = 0;

  /** A part took so long. */
  note(characters, seconds) {
    this.#characters += characters;
    this.#seconds += seconds;
  }

  forget() {
    this.#characters = this.#seconds = 0;
  }

  /** Seconds that so many characters take. */
  of(characters) {
    return characters * (this.#characters === 0 ? USUAL : this.#seconds / this.#characters);
  }
}
