// Spectra of short frames.

/** Powers of the bins 0 to n/2 of a real frame, whose length n is a power of two. */
export function powerSpectrum(frame) {
  const n = frame.length;
  const re = Float64Array.from(frame, (x, i) => x * hann(i, n));
  const im = new Float64Array(n);
  transform(re, im);
  return Float64Array.from({ length: n / 2 + 1 }, (_, k) => re[k] ** 2 + im[k] ** 2);
}

function hann(i, n) {
  return 0.5 - 0.5 * Math.cos((2 * Math.PI * i) / n);
}

// In place, radix 2.
function transform(re, im) {
  const n = re.length;
  for (let i = 1, j = 0; i < n; i += 1) {
    let bit = n >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) {
      [re[i], re[j]] = [re[j], re[i]];
      [im[i], im[j]] = [im[j], im[i]];
    }
  }
  for (let size = 2; size <= n; size *= 2) {
    const half = size / 2;
    for (let k = 0; k < half; k += 1) {
      const angle = (-2 * Math.PI * k) / size;
      const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
      for (let i = k; i < n; i += size) {
        const j = i + half;
        const x = re[j] * cos - im[j] * sin;
        const y = re[j] * sin + im[j] * cos;
        re[j] = re[i] - x;
        im[j] = im[i] - y;
        re[i] += x;
        im[i] += y;
      }
    }
  }
}
