"""Makes the ONNX models that are measured, in the environment of ONNX Runtime: `python -m harness.onnx_models MODEL FOLDER`."""
import logging
import pathlib
import sys
from functools import partial

import onnx
import torch
from onnxruntime.quantization import QuantType, quantize_dynamic
from onnxruntime.transformers.fusion_options import FusionOptions
from onnxruntime.transformers.optimizer import optimize_model
from transformers import AutoModel

from harness.onnx_inputs import INPUTS, OUTPUT


class States(torch.nn.Module):
    """The model with its inputs in a fixed order, and the states of the tokens as its result."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self._model = model

    def forward(self, ids: torch.Tensor, mask: torch.Tensor, types: torch.Tensor) -> torch.Tensor:
        states: torch.Tensor = self._model(input_ids=ids, attention_mask=mask, token_type_ids=types).last_hidden_state
        return states


def main() -> None:
    model, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    logging.disable(logging.WARNING)
    folder.mkdir(parents=True, exist_ok=True)
    exported, fused, approximated = (folder / f"float32-{name}.onnx" for name in ("exported", "fused", "approximated"))
    export(model, exported)
    fuse(exported, fused, approximate=False)
    fuse(exported, approximated, approximate=True)
    # The optimiser leaves no types for the results of its nodes.
    quantize = partial(quantize_dynamic, extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT})
    for name, source in (("exported", exported), ("fused", fused), ("approximated", approximated)):
        quantize(source, folder / f"int8-{name}.onnx", per_channel=True, weight_type=QuantType.QInt8)
    quantize(exported, folder / "int8-tensor.onnx", per_channel=False, weight_type=QuantType.QInt8)
    quantize(exported, folder / "int8-unsigned.onnx", per_channel=False, weight_type=QuantType.QUInt8)
    quantize(exported, folder / "int8-reduced.onnx", per_channel=True, reduce_range=True, weight_type=QuantType.QInt8)


def export(model: str, path: pathlib.Path) -> None:
    """Exports by tracing, with plain attention: the optimiser recognises the attention of such a graph only."""
    plain = AutoModel.from_pretrained(model, attn_implementation="eager", add_pooling_layer=False).eval()
    ids = torch.randint(1000, 2000, (2, 16))
    mask = torch.ones_like(ids)
    mask[1, 10:] = 0
    names = [*INPUTS, OUTPUT]
    torch.onnx.export(
        States(plain),
        (ids, mask, torch.zeros_like(ids)),
        str(path),
        dynamo=False,
        opset_version=17,
        input_names=INPUTS,
        output_names=[OUTPUT],
        dynamic_axes={name: {0: "texts", 1: "tokens"} for name in names},
    )


def fuse(source: pathlib.Path, target: pathlib.Path, approximate: bool) -> None:
    options = FusionOptions("bert")
    options.enable_gelu_approximation = approximate
    model = optimize_model(
        str(source), model_type="bert", num_heads=12, hidden_size=384, optimization_options=options
    )
    model.save_model_to_file(str(target))


if __name__ == "__main__":
    main()
