const SEEDS = 1_000_000; // few enough to be read aloud

/** A seed at random. */
export function drawnSeed() {
  return crypto.getRandomValues(new Uint32Array(1))[0] % SEEDS;
}
