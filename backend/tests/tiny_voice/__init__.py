"""A voice of one ONNX file in one stage, without vLLM: the shape of many small voices."""
