"""Stages of one pipeline on several machines: stage hosts, and a pipeline's stages on them.

A stage host spawns today's stage process and stands in for its server: it relays the control
channel, and the edges that leave the machine, over one link."""
