"""The names of an ONNX model's inputs and of its result."""
INPUTS = ["input_ids", "attention_mask", "token_type_ids"]
OUTPUT = "states"
