"""The command `cantata`: its options and commands. What is heavy is imported when it is needed."""
