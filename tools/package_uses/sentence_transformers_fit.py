"""Sentence embeddings of a small BERT made here, trained on pairs."""

import tempfile
from pathlib import Path

import same
import torch
from sentence_transformers import SentenceTransformer, losses, models
from transformers import BertConfig, BertModel, BertTokenizer

with tempfile.TemporaryDirectory() as folder:
    words = "[PAD] [UNK] [CLS] [SEP] [MASK] a b c d e f g h i j".split()
    Path(folder, "vocab.txt").write_text("\n".join(words))
    BertTokenizer(f"{folder}/vocab.txt").save_pretrained(folder)
    config = BertConfig(
        vocab_size=len(words),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=48,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    same.weights(BertModel(config)).save_pretrained(folder)
    word = models.Transformer(folder, max_seq_length=16)
    model = SentenceTransformer(modules=[word, models.Pooling(word.get_word_embedding_dimension())], device="cpu")
same.weights(model)
loss_of = losses.MultipleNegativesRankingLoss(model)
pairs = ["a b c", "d e f", "g h i"], ["a c b", "f e d", "i h g"]
features = [model.tokenize(list(side)) for side in pairs]
features = [{k: v for k, v in f.items() if isinstance(v, torch.Tensor)} for f in features]
seen = same.train(model, lambda m: loss_of([dict(f) for f in features], None))
same.report([*seen, float(model.encode(pairs[0], convert_to_tensor=True, show_progress_bar=False).abs().mean())])
