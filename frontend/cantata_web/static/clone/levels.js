// Figures of a recording by which its use as a voice is judged.

import { powerSpectrum } from "./spectrum.js";

const FRAME_SECONDS = 0.03;
const USED_SECONDS = 15; // the server uses no more
const LOWEST_HZ = 80;
const HIGHEST_HZ = 8_000;
const BANDS = 24;
const TONE_BINS = 2; // on either side of a tone's peak
const TONE_SHARE = 0.95; // of a frame's power
const SOUNDING_DB = 25; // below the loud frames
const NOISE_PEAKS = 4; // a bin of noise seldom exceeds its mean by more
const FULL_SCALE = 0.985; // lossy formats do not end exactly at 1

/**
 * @param {Float32Array} samples full scale at 1
 * @returns {{seconds, soundingSeconds, loudDb, quietDb, clipped, tonal, steady}} `loudDb` and
 *   `quietDb`: the levels that a tenth of the frames exceed, and that a tenth stay below, in dBFS;
 *   `clipped`: the share of samples at full scale; of the frames that are nearly as loud as the
 *   loud ones: `soundingSeconds`, `tonal`, the share of single tones among them, and `steady`, which
 *   is 1 if all have the same spectrum
 */
export function measure(samples, sampleRate) {
  const used = samples.subarray(0, Math.round(USED_SECONDS * sampleRate));
  const size = 2 ** Math.round(Math.log2(FRAME_SECONDS * sampleRate));
  const frames = Array.from({ length: Math.floor(used.length / size) }, (_, i) =>
    used.subarray(i * size, (i + 1) * size),
  );
  const levels = frames.map(decibels);
  const ordered = levels.toSorted((a, b) => a - b);
  const at = (part) => ordered[Math.floor(part * (ordered.length - 1))] ?? -100;
  const sounding = frames.filter((_, i) => levels[i] > at(0.9) - SOUNDING_DB);
  const quiet = frames.filter((_, i) => levels[i] <= at(0.1));
  const spectra = withoutBackground(sounding.map(powerSpectrum), quiet.map(powerSpectrum));
  const heard = spectra.map((spectrum) => emphasised(spectrum, sampleRate / size));
  return {
    seconds: samples.length / sampleRate,
    soundingSeconds: (sounding.length * size) / sampleRate,
    loudDb: at(0.9),
    quietDb: at(0.1),
    clipped: mean(used, (sample) => Number(Math.abs(sample) >= FULL_SCALE)),
    tonal: mean(heard, (spectrum) => Number(isTone(spectrum))),
    steady: steadiness(heard),
  };
}

function decibels(frame) {
  return 10 * Math.log10(Math.max(mean(frame, (sample) => sample * sample), 1e-10));
}

function mean(values, of) {
  return values.length === 0 ? 0 : values.reduce((sum, value) => sum + of(value), 0) / values.length;
}

// Steady noise in all frames would make speech look steady.
function withoutBackground(spectra, ofBackground) {
  const background = spectra[0]?.map((_, k) => mean(ofBackground, (spectrum) => spectrum[k]));
  return spectra.map((spectrum) =>
    spectrum.map((power, k) => Math.max(0, power - NOISE_PEAKS * background[k])),
  );
}

// Powers with their frequencies; by 6 dB more per octave, or a voice's pitch would hide its sounds.
function emphasised(spectrum, binHz) {
  const first = Math.ceil(LOWEST_HZ / binHz);
  const powers = spectrum.slice(first, Math.floor(HIGHEST_HZ / binHz));
  return { binHz, first, powers: powers.map((power, i) => power * (first + i) ** 2) };
}

function isTone({ powers }) {
  const total = (values) => values.reduce((sum, power) => sum + power, 0);
  const peak = powers.indexOf(powers.reduce((most, power) => Math.max(most, power), 0));
  const near = powers.subarray(Math.max(0, peak - TONE_BINS), peak + TONE_BINS + 1);
  return total(near) > TONE_SHARE * total(powers);
}

// Amplitudes in bands of equal width in octaves, as a vector of length 1.
function inBands({ binHz, first, powers }) {
  const bands = new Float64Array(BANDS);
  const octaves = Math.log2(HIGHEST_HZ / LOWEST_HZ);
  powers.forEach((power, i) => {
    const above = Math.log2(((first + i) * binHz) / LOWEST_HZ) / octaves;
    bands[Math.min(BANDS - 1, Math.floor(above * BANDS))] += power;
  });
  const length = Math.sqrt(bands.reduce((sum, power) => sum + power, 0)) || 1;
  return bands.map((power) => Math.sqrt(power) / length);
}

// The mean cosine between the spectra and the mean of all of them.
function steadiness(spectra) {
  const vectors = spectra.map(inBands);
  const middle = new Float64Array(BANDS);
  for (const vector of vectors) vector.forEach((value, band) => (middle[band] += value));
  const length = Math.hypot(...middle) || 1;
  return mean(vectors, (vector) => vector.reduce((sum, x, i) => sum + x * middle[i], 0) / length);
}
