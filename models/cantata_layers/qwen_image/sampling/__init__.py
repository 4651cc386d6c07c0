"""From noise to latents: the noise itself, how much of it is left at each step, and the steps."""
