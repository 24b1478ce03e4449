"""LoRA on a small GPT-2, saved and merged."""

import tempfile

import same
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import GPT2Config, GPT2LMHeadModel

config = GPT2Config(
    vocab_size=64, n_embd=32, n_layer=2, n_head=4, n_positions=64, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0
)
ids = same.labels(48, 64).reshape(4, 12)
model = get_peft_model(
    same.weights(GPT2LMHeadModel(config)),
    LoraConfig(r=4, lora_dropout=0.0, target_modules=["c_attn"], fan_in_fan_out=True),
)
same.weights(model)
losses = same.train(model, lambda m: m(input_ids=ids, labels=ids).loss, lr=0.5)
with tempfile.TemporaryDirectory() as folder:
    model.save_pretrained(folder)
    again = PeftModel.from_pretrained(same.weights(GPT2LMHeadModel(config)), folder)
    merged = again.merge_and_unload()
    with torch.no_grad():
        losses.append(merged(input_ids=ids, labels=ids).loss.item())
same.report(losses)
