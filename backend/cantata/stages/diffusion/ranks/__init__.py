"""One denoiser in several processes (ranks): the stage's own, which is rank 0, and others that it
starts. Each does the same with the same jobs, and computes its share of every forward."""
