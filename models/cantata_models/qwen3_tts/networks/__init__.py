"""The parts of the talker that are plain torch."""
