"""Qwen2.5-Omni, a public model that hears, sees and speaks, from its published checkpoints."""
