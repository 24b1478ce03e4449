"""Whisper, small and with random weights: spectrograms, a step of training, and decoding by beams"""

import same
import torch
import whisper
from whisper.model import ModelDimensions, Whisper

torch.manual_seed(0)
dims = ModelDimensions(
    n_mels=80,
    n_audio_ctx=1500,
    n_audio_state=16,
    n_audio_head=2,
    n_audio_layer=2,
    n_vocab=51865,
    n_text_ctx=448,
    n_text_state=16,
    n_text_head=2,
    n_text_layer=2,
)
model = same.weights(Whisper(dims), 0.2)
sound = same.data(16000 * 2) * 0.1
spectrum = whisper.log_mel_spectrogram(whisper.pad_or_trim(sound))
tokens = torch.tensor([[50258, 50259, 50359, 50363, 11, 345, 678]])
numbers = [spectrum.sum().item()]
numbers += same.train(
    model,
    lambda m: torch.nn.functional.cross_entropy(m(spectrum[None], tokens[:, :-1]).transpose(1, 2), tokens[:, 1:]),
    2,
    0.01,
)
model.eval()
for options in ({"sample_len": 6}, {"sample_len": 5, "beam_size": 3}):
    found = whisper.decode(model, spectrum, whisper.DecodingOptions(language="en", fp16=False, **options))
    numbers += [found.avg_logprob, *map(float, found.tokens)]
same.report(numbers)
