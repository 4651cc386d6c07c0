"""How good the embedded voice is: measured over held-out sentences, beside its teachers."""
