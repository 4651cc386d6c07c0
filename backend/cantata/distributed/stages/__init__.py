"""Stages of one pipeline on several machines: stage hosts, and a pipeline's stages on them.

A stage host spawns the usual stage process and stands in for its server: over one link, it relays
the control channel and the edges that leave the machine."""
