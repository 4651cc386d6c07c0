"""A tiny model that draws, for tests: a text encoder, an encoder of references, a denoiser and a
decoder, in NumPy. A prompt names the faults that it is to have."""
