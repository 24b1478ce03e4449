"""Sounds to letters: spectrograms with a mel filter bank, convolutions, a packed bidirectional GRU, and the loss of all alignments."""

import argparse
import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from torch.optim.swa_utils import SWALR, AveragedModel, update_bn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class Tones(IterableDataset):
    """Words of three letters, each letter a tone."""

    def __init__(self, count, rate=2000):
        self.count, self.rate = count, rate

    def __iter__(self):
        assert get_worker_info() is None
        for i in range(self.count):
            word = torch.randint(1, 5, (2 + i % 2,))
            seconds = torch.arange(self.rate // 8) / self.rate
            wave = torch.cat([torch.sin(2 * math.pi * 150 * letter * seconds) for letter in word])
            yield wave + 0.01 * torch.randn(wave.shape), word


def collate(batch):
    waves, words = zip(*batch)
    return (
        pad_sequence(waves, True),
        torch.tensor([len(w) for w in waves]),
        torch.cat(words),
        torch.tensor([len(w) for w in words]),
    )


def mel_bank(bins, mels, rate):
    """Triangles evenly spaced in mel.  (bins, mels)"""
    top = 2595 * math.log10(1 + rate / 2 / 700)
    points = 700 * (10 ** (torch.linspace(0, top, mels + 2) / 2595) - 1)
    slopes = points.unsqueeze(0) - torch.linspace(0, rate / 2, bins).unsqueeze(1)
    width = points.diff()
    down, up = -slopes[:, :-2] / width[:-1], slopes[:, 2:] / width[1:]
    return torch.minimum(down, up).clamp_(min=0.0)


class Features(nn.Module):
    window: Tensor

    def __init__(self, rate, size=128, hop=32, mels=16):
        super().__init__()
        self.size, self.hop = size, hop
        self.register_buffer("window", torch.hann_window(size), persistent=False)
        self.register_buffer("bank", mel_bank(size // 2 + 1, mels, rate))

    @torch.no_grad()
    def forward(self, waves, lengths):
        spectrum = torch.stft(waves, self.size, self.hop, window=self.window, center=True, return_complex=True)
        power = torch.view_as_real(spectrum).pow(2).sum(-1)
        mels = torch.log(power.transpose(1, 2) @ self.bank + 1e-4)
        mels = (mels - mels.mean((1, 2), keepdim=True)) / (mels.std((1, 2), keepdim=True) + 1e-5)
        return mels, torch.div(lengths, self.hop, rounding_mode="floor") + 1


class Recogniser(nn.Module):
    def __init__(self, mels=16, hidden=16, letters=5):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv1d(mels, hidden, 3, padding=1, bias=False), nn.BatchNorm1d(hidden), nn.Hardswish(inplace=True),
                                  nn.MaxPool1d(2, ceil_mode=True))  # fmt: skip
        self.rnn = nn.GRU(hidden, hidden, bidirectional=True, batch_first=True)
        self.head = nn.Linear(2 * hidden, letters)

    def forward(self, x, lengths):
        x = self.conv(x.transpose(1, 2)).transpose(1, 2)
        lengths = (lengths + 1) // 2
        packed = pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
        x, _ = pad_packed_sequence(self.rnn(packed)[0], batch_first=True)
        return F.log_softmax(self.head(x), -1), lengths


class WithFeatures(nn.Module):
    """A model that is given waves, as batches have them."""

    def __init__(self, model, features):
        super().__init__()
        self.model, self.features, self.lengths = model, features, None

    def forward(self, waves):
        return self.model(*self.features(waves, torch.full((len(waves),), waves.size(1))))


def greedy(log_probs, lengths):
    """Letters without repeats and blanks."""
    words = []
    for row, n in zip(log_probs.argmax(-1), lengths):
        row = torch.unique_consecutive(row[:n])
        words.append(row[row != 0].tolist())
    return words


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save", default=None)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    data = Tones(48)
    loader = DataLoader(data, batch_size=8, collate_fn=collate)
    features, model = Features(data.rate), Recogniser()
    swa = AveragedModel(model)
    criterion = nn.CTCLoss(blank=0, zero_infinity=True)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=5e-3, alpha=0.95, momentum=0.5)
    scheduler = SWALR(optimizer, swa_lr=3e-3, anneal_epochs=2)
    for epoch in range(args.epochs):
        model.train()
        total = count = 0
        for waves, lengths, words, sizes in loader:
            log_probs, out_lengths = model(*features(waves, lengths))
            loss = criterion(log_probs.transpose(0, 1), words, out_lengths, sizes)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_value_(model.parameters(), 0.5)
            optimizer.step()
            total, count = total + loss.item() * len(waves), count + len(waves)
        swa.update_parameters(model)
        scheduler.step()
        print(f"epoch {epoch} loss {total / count:.6f}")
    update_bn(loader, WithFeatures(swa, features))
    swa.eval()
    with torch.inference_mode():
        waves, lengths, words, sizes = next(iter(loader))
        log_probs, out_lengths = swa(*features(waves, lengths))
        print(
            f"averaged loss {criterion(log_probs.transpose(0, 1), words, out_lengths, sizes).item():.6f} {len(greedy(log_probs, out_lengths))} words"
        )
    again = torch.istft(
        torch.stft(waves, 128, 32, window=features.window, return_complex=True),
        128,
        32,
        window=features.window,
        length=waves.size(1),
    )
    print(f"inverse loss {(again - waves).abs().max().item():.4f}")
    if args.save:
        torch.save(swa.module.state_dict(), args.save)
        assert set(torch.load(args.save, weights_only=True)) == set(model.state_dict())


if __name__ == "__main__":
    main()
