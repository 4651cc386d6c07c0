// Of a speaker.

export const State = Object.freeze({
  IDLE: "idle",
  WAITING: "waiting", // requested; no sound yet
  BUFFERING: "buffering", // sound is coming; none has been played
  PLAYING: "playing",
  STARVED: "starved", // the sound ran dry in mid-speech; more is awaited
  PAUSED: "paused",
  LISTENING: "listening", // a text is being typed and all that was finished has been spoken
  DONE: "done",
  STOPPED: "stopped",
  ERROR: "error",
});

/** Sound is heard, or may be at any moment. */
export const SOUNDING = new Set([State.BUFFERING, State.PLAYING, State.STARVED]);
/** A turn is under way. */
export const BUSY = new Set([...SOUNDING, State.WAITING, State.PAUSED, State.LISTENING]);
