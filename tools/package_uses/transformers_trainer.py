"""Trainer on small models made from a configuration, then save, load and generate with a cache."""

import sys
import tempfile

import same
import torch
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    ViTConfig,
    ViTForImageClassification,
)

IDS = same.labels(8 * 12, 50, 1).reshape(8, 12) + 1
GIVEN = {"input_ids": IDS, "labels": IDS}


def bert():
    config = BertConfig(
        vocab_size=64,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=48,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        num_labels=3,
    )
    return BertForSequenceClassification(config), {
        "input_ids": IDS,
        "attention_mask": torch.ones_like(IDS),
        "labels": same.labels(8, 3),
    }


def gpt2():
    config = GPT2Config(
        vocab_size=64,
        n_embd=32,
        n_layer=2,
        n_head=4,
        n_positions=64,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=1,
        eos_token_id=0,
        pad_token_id=0,
    )
    return GPT2LMHeadModel(config), GIVEN


def llama():
    config = LlamaConfig(
        vocab_size=64,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
        bos_token_id=1,
        eos_token_id=0,
        pad_token_id=0,
    )
    return LlamaForCausalLM(config), GIVEN


def t5():
    config = T5Config(
        vocab_size=64,
        d_model=32,
        d_kv=8,
        d_ff=48,
        num_layers=2,
        num_heads=4,
        dropout_rate=0.0,
        decoder_start_token_id=0,
        eos_token_id=1,
        pad_token_id=0,
    )
    return T5ForConditionalGeneration(config), GIVEN


def vit():
    config = ViTConfig(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=48,
        image_size=16,
        patch_size=4,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        num_labels=3,
    )
    return ViTForImageClassification(config), {"pixel_values": same.data(8, 3, 16, 16), "labels": same.labels(8, 3)}


class Losses(TrainerCallback):
    def __init__(self):
        self.seen = []

    def on_log(self, args, state, control, logs=None, **kwargs):
        if "loss" in logs:
            self.seen.append(float(logs["loss"]))


def use(make):
    model, batch = make()
    same.weights(model)
    rows = [{key: value[i] for key, value in batch.items()} for i in range(8)]
    losses = Losses()
    with tempfile.TemporaryDirectory() as folder:
        args = TrainingArguments(
            output_dir=folder,
            per_device_train_batch_size=4,
            num_train_epochs=2,
            learning_rate=1e-2,
            logging_steps=1,
            report_to=[],
            use_cpu=True,
            dataloader_num_workers=0,
            seed=0,
            data_seed=0,
            lr_scheduler_type="constant",
            save_strategy="epoch",
            disable_tqdm=True,
        )

        class InOrder(Trainer):
            def _get_train_sampler(self, *args, **kwargs):
                return torch.utils.data.SequentialSampler(self.train_dataset)

        trainer = InOrder(model=model, args=args, train_dataset=rows, callbacks=[losses])
        trainer.train()
        trainer.save_model(folder)
        again = type(model).from_pretrained(folder).eval()
        model.eval()
        with torch.no_grad():
            first, second = model(**batch).logits, again(**batch).logits
        assert torch.equal(first, second), (first - second).abs().max()
        if again.can_generate():
            made = again.generate(IDS[:2, :4], max_new_tokens=8, do_sample=False, use_cache=True)
            losses.seen.extend(made.flatten().tolist())
    return [*losses.seen, first.double().mean().item()]


found = []
for name in sys.argv[1:] or ("bert", "gpt2", "llama", "t5", "vit"):
    found += use(globals()[name])
same.report(found)
