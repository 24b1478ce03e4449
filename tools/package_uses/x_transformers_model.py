"""A language model with rotary positions and memory, trained and asked for more."""

import same
from x_transformers import AutoregressiveWrapper, Decoder, TransformerWrapper

net = TransformerWrapper(
    num_tokens=20, max_seq_len=32, attn_layers=Decoder(dim=32, depth=2, heads=2, rotary_pos_emb=True, ff_glu=True)
)
model = same.weights(AutoregressiveWrapper(net))
x = same.labels(4 * 16, 20).reshape(4, 16)
found = same.train(model, lambda m: m(x), 4)
model.eval()
more = model.generate(x[:1, :4], 6, temperature=0.0)
same.report([*found, *more.flatten().tolist()])
