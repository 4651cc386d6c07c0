// Measurements of one turn.

const USUAL_SAMPLE_RATE = 24_000;

export function freshMetrics(reserveSeconds) {
  return {
    ttfpSeconds: null, // from the request to the first binary frame
    audibleSeconds: null, // from the request to the first sound at the loudspeaker
    outputLatencySeconds: null,
    silenceSeconds: null, // stop to silence, by the audio thread's clock
    sampleRate: USUAL_SAMPLE_RATE,
    deviceRate: null,
    channels: 1,
    reserveSeconds,
    chunks: 0,
    receivedFrames: 0,
    receivingSeconds: null, // in which they came, when the sound last ran dry
    waitSeconds: null, // until enough is there to play the rest in one go, where it was slow
    playedFrames: 0,
    bufferedSeconds: 0,
    starvedFrames: 0, // frames of silence that the listener heard inside an utterance
    underruns: 0,
    gaps: [], // of each underrun: the frame before which it was silent, and for how many frames
    stopped: false,
    server: null, // the last utterance's audio.done
  };
}
