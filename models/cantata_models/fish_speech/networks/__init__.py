"""The parts of the talker that vLLM's layers do not have."""
