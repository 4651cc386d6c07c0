"""The judge: both networks once more in plain PyTorch, whole sequences at a time.

Written from the format alone: the published program's licence does not permit its code here, so it
was not run. That is weaker evidence than a reference package's goldens. The judge shares no code
with the model.
"""
