"""A small CLIP trained on pairs of pictures and texts."""

import open_clip
import same

net = open_clip.CLIP(
    embed_dim=16,
    vision_cfg={"image_size": 32, "layers": 2, "width": 32, "head_width": 16, "patch_size": 8},
    text_cfg={"context_length": 16, "vocab_size": 49408, "width": 32, "heads": 2, "layers": 2},
)
same.weights(net)
texts = open_clip.tokenize(["a cat", "a dog on a mat", "snow", "a small boat"], context_length=16)
pictures, loss_of = same.data(4, 3, 32, 32), open_clip.ClipLoss()
same.report(same.train(net, lambda m: loss_of(*m(pictures, texts)), 4, 0.01))
