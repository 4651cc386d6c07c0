"""Calls: sessions of /v1/realtime over WebRTC."""
