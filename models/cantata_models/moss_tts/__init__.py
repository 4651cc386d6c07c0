"""MOSS-TTS-Local v1.5 and MOSS-TTS-Nano: two models with one tokenizer family."""
