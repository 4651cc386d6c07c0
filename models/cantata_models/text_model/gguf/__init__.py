"""GGUF files, the format of llama.cpp, as folders that vLLM reads."""
