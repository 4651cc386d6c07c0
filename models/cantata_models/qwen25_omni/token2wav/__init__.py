"""From codes to sound: a diffusion transformer makes a mel spectrogram, a vocoder the wave."""
