"""Placement and supervision on Ray. No sample passes through it.

- `applications`: what `cantata deploy` submits, as builders of Ray Serve's applications;
  `manifests`: the same, to submit with other tools.
- `deployments`: what runs in Ray's actors: the directory, supervisors of replicas and edges.
- `hosted`, `hosting`: both ends between such a supervisor and its process.
- `policy`, `roll`: pure decisions: how many replicas to run, and which of them are up.
- `serve_api`: the only module that imports Ray.
"""
