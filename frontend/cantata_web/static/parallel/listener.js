// What a player without a buffer would play of a stream. Times in seconds from the request.

export class Listener {
  chunks = []; // {at, seconds}
  plays = []; // {from, to}, with gaps between them
  receivedSeconds = 0;

  /** `seconds` of sound arrived at the time `at`. */
  receive(at, seconds) {
    this.chunks.push({ at, seconds });
    this.receivedSeconds += seconds;
    const last = this.plays.at(-1);
    if (last !== undefined && at <= last.to) last.to += seconds;
    else this.plays.push({ from: at, to: at + seconds });
  }

  get firstAt() {
    return this.chunks[0]?.at ?? null;
  }

  get underruns() {
    return Math.max(0, this.plays.length - 1);
  }

  get gapSeconds() {
    return this.plays.slice(1).reduce((sum, play, i) => sum + play.from - this.plays[i].to, 0);
  }

  get endsAt() {
    return this.plays.at(-1)?.to ?? 0;
  }
}

/** The value below which the share `share` of `values` lies; null if there are none. */
export function quantile(values, share) {
  if (values.length === 0) return null;
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)];
}
