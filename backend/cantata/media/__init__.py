"""Untrusted files of sound, images and videos -> arrays, in bounded time and memory."""
