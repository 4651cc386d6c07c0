"""Small tools of every process: logs, timers, the interpreter, sockets' peers."""
