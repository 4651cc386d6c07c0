"""Placement and supervision on Ray. No sample passes through it.

- `applications`: what `cantata deploy` submits, as builders of Ray Serve's applications;
  `manifests`: the same for others to submit.
- `deployments`: what runs in Ray's actors: the directory, supervisors of replicas and edges.
- `hosted`, `hosting`: both ends between such a supervisor and its process.
- `policy`, `roll`: pure decisions: how many replicas, and which of them are there.
- `serve_api`: the only module that imports Ray.
"""
