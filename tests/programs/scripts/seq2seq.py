"""Sequence to sequence with attention: numbers written in words are turned into digits; packed batches, teacher forcing, beams of one."""

import argparse
import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import optim
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from torch.utils.data import DataLoader

PAD, SOS, EOS = 0, 1, 2
ONES = "zero one two three four five six seven eight nine".split()
TENS = ["", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]


def spelled(n):
    return (TENS[n // 10] + " " + ONES[n % 10]).split() if n >= 20 else [ONES[n % 10], "teen"] if n >= 10 else [ONES[n]]


WORDS = {w: k + 3 for k, w in enumerate(sorted({w for n in range(100) for w in spelled(n)}))}


def pair(n):
    return torch.tensor([WORDS[w] for w in spelled(n)] + [EOS]), torch.tensor([int(c) + 3 for c in str(n)] + [EOS])


def collate(batch):
    batch.sort(key=lambda p: -len(p[0]))
    sources, targets = zip(*batch, strict=True)
    lengths = torch.tensor([len(s) for s in sources])
    return pad_sequence(sources, batch_first=True, padding_value=PAD), lengths, pad_sequence(targets, batch_first=True)


class EncoderRNN(nn.Module):
    def __init__(self, input_size, hidden_size, dropout_p=0.0):
        super().__init__()
        self.embedding = nn.Embedding(input_size, hidden_size, padding_idx=PAD)
        self.gru = nn.GRU(hidden_size, hidden_size, batch_first=True, bidirectional=True)
        self.join = nn.Linear(2 * hidden_size, hidden_size)
        self.dropout = nn.Dropout(dropout_p)

    def forward(self, input, lengths):
        embedded = self.dropout(self.embedding(input))
        packed = pack_padded_sequence(embedded, lengths, batch_first=True)
        output, hidden = self.gru(packed)
        output, _ = pad_packed_sequence(output, batch_first=True)
        return self.join(output), torch.tanh(self.join(torch.cat([hidden[0], hidden[1]], -1)))[None]


class BahdanauAttention(nn.Module):
    def __init__(self, hidden_size):
        super().__init__()
        self.Wa, self.Ua, self.Va = (
            nn.Linear(hidden_size, hidden_size),
            nn.Linear(hidden_size, hidden_size),
            nn.Linear(hidden_size, 1),
        )

    def forward(self, query, keys, mask):
        scores = self.Va(torch.tanh(self.Wa(query) + self.Ua(keys))).squeeze(2).unsqueeze(1)
        weights = F.softmax(scores.masked_fill(mask[:, None], float("-inf")), dim=-1)
        return torch.bmm(weights, keys), weights


class AttnDecoderRNN(nn.Module):
    def __init__(self, hidden_size, output_size):
        super().__init__()
        self.embedding = nn.Embedding(output_size, hidden_size)
        self.attention = BahdanauAttention(hidden_size)
        self.gru = nn.GRU(2 * hidden_size, hidden_size, batch_first=True)
        self.out = nn.Linear(hidden_size, output_size)

    def forward(self, encoder_outputs, hidden, mask, target=None, steps=4):
        batch = encoder_outputs.size(0)
        symbol = torch.empty(batch, 1, dtype=torch.long, device=encoder_outputs.device).fill_(SOS)
        outputs, attentions = [], []
        for i in range(steps if target is None else target.size(1)):
            embedded = self.embedding(symbol)
            context, weights = self.attention(hidden.permute(1, 0, 2), encoder_outputs, mask)
            output, hidden = self.gru(torch.cat((embedded, context), dim=2), hidden)
            output = self.out(output)
            outputs.append(output)
            attentions.append(weights)
            if target is not None:
                symbol = target[:, i].unsqueeze(1)  # teacher forcing
            else:
                _, topi = output.topk(1)
                symbol = topi.squeeze(-1).detach()
        return F.log_softmax(torch.cat(outputs, dim=1), dim=-1), hidden, torch.cat(attentions, dim=1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--hidden", type=int, default=24)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save", default="")
    args = parser.parse_args()
    random.seed(0)
    torch.manual_seed(args.seed)
    numbers = list(range(100))
    random.shuffle(numbers)
    loader = DataLoader([pair(n) for n in numbers[:88]], batch_size=22, collate_fn=collate)
    encoder, decoder = EncoderRNN(len(WORDS) + 3, args.hidden), AttnDecoderRNN(args.hidden, 13)
    optimizers = [optim.Adam(m.parameters(), lr=0.01) for m in (encoder, decoder)]
    criterion = nn.NLLLoss(ignore_index=PAD)
    for epoch in range(args.epochs):
        total = 0.0
        for source, lengths, target in loader:
            for optimizer in optimizers:
                optimizer.zero_grad()
            outputs, hidden = encoder(source, lengths)
            mask = source.eq(PAD)[:, : outputs.size(1)]
            decoded, _, _ = decoder(outputs, hidden, mask, target)
            loss = criterion(decoded.view(-1, decoded.size(-1)), target.view(-1))
            loss.backward()
            for optimizer in optimizers:
                optimizer.step()
            total += loss.item()
        print(f"epoch {epoch} loss {total / len(loader):.6f}")
    encoder.eval()
    decoder.eval()
    with torch.no_grad():
        source, lengths, target = collate([pair(n) for n in numbers[88:]])
        outputs, hidden = encoder(source, lengths)
        decoded, _, attention = decoder(outputs, hidden, source.eq(PAD), target)
        free, _, _ = decoder(outputs, hidden, source.eq(PAD))
        assert torch.allclose(attention.sum(-1), torch.ones(()))
        digits = free.argmax(-1)
        print(f"test loss {criterion(decoded.flatten(0, 1), target.flatten()).item():.6f} said {digits[0].tolist()}")
    if args.save:
        torch.save({"encoder": encoder, "decoder": decoder.state_dict(), "rng": torch.get_rng_state()}, args.save)
        kept = torch.load(args.save, weights_only=False)
        torch.set_rng_state(kept["rng"])
        with torch.no_grad():
            assert torch.equal(kept["encoder"](source, lengths)[0], outputs)


if __name__ == "__main__":
    main()
