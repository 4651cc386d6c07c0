"""Connectors move chunks along an edge and know no model."""
