"""One TCP connection between two processes: many streams, heartbeats, a loss that is noticed in
time. Knows neither models nor speech."""
