"""hibari: a natural English voice of 6 million parameters, in the ONNX files of its own package."""
