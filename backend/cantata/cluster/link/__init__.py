"""One TCP connection between two processes: many streams, beats, an end that is found out in time.
Knows neither models nor speech."""
