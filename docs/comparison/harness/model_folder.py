"""A model folder that all systems read: the given one, with the small files that transformers expects beside it."""
import json
import pathlib
from typing import Any

MAX_TOKENS = 256
"""The longest text in word pieces that the model's authors recommend. lkr's chunks are shorter."""

LINKED = ("config.json", "model.safetensors", "tokenizer.json")
"""The files of the given folder."""

FILES: dict[str, Any] = {
    "tokenizer_config.json": {
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": True,
        "model_max_length": MAX_TOKENS,
        "unk_token": "[UNK]",
        "sep_token": "[SEP]",
        "pad_token": "[PAD]",
        "cls_token": "[CLS]",
        "mask_token": "[MASK]",
    },
    "sentence_bert_config.json": {"max_seq_length": MAX_TOKENS, "do_lower_case": False},
    "modules.json": [
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
        {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"},
    ],
    "1_Pooling/config.json": {"word_embedding_dimension": 384, "pooling_mode_mean_tokens": True},
}


def make(model: pathlib.Path, target: pathlib.Path) -> pathlib.Path:
    """Links the files of `model` into `target`, and adds those that are missing."""
    for name in LINKED:
        link(model.resolve() / name, target / name)
    for name, content in FILES.items():
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content, indent=2), encoding="utf-8")
    return target


def link(source: pathlib.Path, target: pathlib.Path) -> None:
    if not source.exists():
        raise FileNotFoundError(f"the model folder lacks {source.name}: {source}")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    target.symlink_to(source)
