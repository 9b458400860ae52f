"""A run as something that needs no calibrant: plain transformers, a folder with code, ONNX, the hub."""
