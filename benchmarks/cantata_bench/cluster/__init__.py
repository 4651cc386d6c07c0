"""Measures what several machines cost: a link beside one machine's connector, an edge beside a
server."""
