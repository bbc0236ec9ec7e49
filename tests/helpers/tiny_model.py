"""A tiny random language model in a folder, made on the spot: for tests of engines, never for scores.

A byte-level BPE tokenizer trained on the bundled data, a ChatML template, two layers of random
float32 weights (Llama or Qwen3). Random weights repeat tokens, so answers are long and mean nothing;
what they are good for is equality, token for token. Needs torch and transformers; about 5 s.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agentworldbench.resources import mini_folder

END, PAD, START, THINK, NO_THINK = "<|im_end|>", "<|pad|>", "<|im_start|>", "<think>", "</think>"
CONTEXT = 8192
CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + "
    "'<|im_end|>\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}"
    "{% if enable_thinking is defined and enable_thinking %}{{ '<think>\n' }}{% endif %}{% endif %}"
)
NO_SYSTEM = "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system role here') }}{% endif %}"


def make_tokenizer(folder: Path, template: str | None = CHATML) -> Any:
    """Train and save the tokenizer; `template` None makes a base model's."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=3000,
        special_tokens=[PAD, START, END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    raw.train([str(mini_folder() / f"{domain}_test.jsonl") for domain in ("swe", "terminal")], trainer)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw, eos_token=END, pad_token=PAD)
    tokenizer.add_tokens([THINK, NO_THINK])  # as Qwen3 does: added, but not special
    tokenizer.chat_template = template
    tokenizer.save_pretrained(folder)
    return tokenizer


def make_model(folder: Path, kind: str = "llama", template: str | None = CHATML) -> Path:
    """Make and save model and tokenizer; `kind` is llama or qwen3."""
    import torch
    from transformers import AutoModelForCausalLM, LlamaConfig, Qwen3Config

    tokenizer = make_tokenizer(folder, template)
    sizes = {
        "vocab_size": len(tokenizer),
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": CONTEXT,
        "bos_token_id": None,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
        "initializer_range": 0.3,
    }
    config = LlamaConfig(**sizes) if kind == "llama" else Qwen3Config(**sizes, head_dim=16)
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    # Random weights hardly ever draw one certain token: with so many end tokens, answers end early and late.
    model.generation_config.eos_token_id = [tokenizer.eos_token_id, *range(300, 350)]
    model.save_pretrained(folder)
    return folder
