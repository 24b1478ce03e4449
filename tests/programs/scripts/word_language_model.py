"""A language model over words: a recurrent network of any kind, or a transformer, trained on a generated text."""

import argparse
import math
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.onnx


class Dictionary:
    def __init__(self):
        self.word2idx, self.idx2word = {}, []

    def add_word(self, word):
        if word not in self.word2idx:
            self.idx2word.append(word)
            self.word2idx[word] = len(self.idx2word) - 1
        return self.word2idx[word]

    def __len__(self):
        return len(self.idx2word)


class Corpus:
    """Sentences of a small grammar, as one long tensor for each part."""

    def __init__(self):
        self.dictionary = Dictionary()
        self.train, self.valid = self.tokenize(range(0, 220)), self.tokenize(range(220, 270))

    def sentence(self, k):
        subject, verb, thing = (
            ("the cat", "a dog", "the old man")[k % 3],
            ("saw", "ate", "took")[k // 3 % 3],
            ("fish", "bread", "bird")[k * 7 % 3],
        )
        return f"{subject} {verb} the {thing} <eos>" if k % 5 else f"when {subject} came , it {verb} a {thing} <eos>"

    def tokenize(self, numbers):
        return torch.cat(
            [
                torch.tensor([self.dictionary.add_word(w) for w in self.sentence(k).split()]).type(torch.int64)
                for k in numbers
            ]
        )


class RNNModel(nn.Module):
    """An encoder, a recurrent module, and a decoder whose weights may be those of the encoder."""

    def __init__(self, rnn_type, ntoken, ninp, nhid, nlayers, dropout=0.5, tie_weights=False):
        super().__init__()
        self.ntoken = ntoken
        self.drop = nn.Dropout(dropout)
        self.encoder = nn.Embedding(ntoken, ninp)
        if rnn_type in ["LSTM", "GRU"]:
            self.rnn = getattr(nn, rnn_type)(ninp, nhid, nlayers, dropout=dropout)
        else:
            nonlinearity = {"RNN_TANH": "tanh", "RNN_RELU": "relu"}[rnn_type]
            self.rnn = nn.RNN(ninp, nhid, nlayers, nonlinearity=nonlinearity, dropout=dropout)
        self.decoder = nn.Linear(nhid, ntoken)
        if tie_weights:
            if nhid != ninp:
                raise ValueError("When using the tied flag, nhid must be equal to emsize")
            self.decoder.weight = self.encoder.weight
        nn.init.uniform_(self.encoder.weight, -0.1, 0.1)
        nn.init.zeros_(self.decoder.bias)
        nn.init.uniform_(self.decoder.weight, -0.1, 0.1)
        self.rnn_type, self.nhid, self.nlayers = rnn_type, nhid, nlayers

    def forward(self, input, hidden):
        emb = self.drop(self.encoder(input))
        output, hidden = self.rnn(emb, hidden)
        decoded = self.decoder(self.drop(output)).view(-1, self.ntoken)
        return F.log_softmax(decoded, dim=1), hidden

    def init_hidden(self, bsz):
        weight = next(self.parameters())
        if self.rnn_type == "LSTM":
            return (weight.new_zeros(self.nlayers, bsz, self.nhid), weight.new_zeros(self.nlayers, bsz, self.nhid))
        return weight.new_zeros(self.nlayers, bsz, self.nhid)


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, dropout=0.1, max_len=100):
        super().__init__()
        self.dropout = nn.Dropout(p=dropout)
        pe = torch.zeros(max_len, d_model)
        position = torch.arange(0, max_len, dtype=torch.float).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2).float() * (-math.log(10000.0) / d_model))
        pe[:, 0::2] = torch.sin(position * div_term)
        pe[:, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe.unsqueeze(0).transpose(0, 1))

    def forward(self, x):
        return self.dropout(x + self.pe[: x.size(0), :])


class TransformerModel(nn.Transformer):
    def __init__(self, ntoken, ninp, nhead, nhid, nlayers, dropout=0.5):
        super().__init__(
            d_model=ninp,
            nhead=nhead,
            dim_feedforward=nhid,
            num_encoder_layers=nlayers,
            num_decoder_layers=1,
            dropout=dropout,
        )
        self.src_mask = None
        self.pos_encoder = PositionalEncoding(ninp, dropout)
        self.input_emb = nn.Embedding(ntoken, ninp)
        self.ninp = ninp
        self.decoder = nn.Linear(ninp, ntoken)
        nn.init.uniform_(self.input_emb.weight, -0.1, 0.1)
        nn.init.zeros_(self.decoder.bias)
        nn.init.uniform_(self.decoder.weight, -0.1, 0.1)

    def _generate_square_subsequent_mask(self, sz):
        return torch.log(torch.tril(torch.ones(sz, sz)))

    def forward(self, src, has_mask=True):
        if has_mask:
            if self.src_mask is None or self.src_mask.size(0) != len(src):
                self.src_mask = self._generate_square_subsequent_mask(len(src)).to(src.device)
        else:
            self.src_mask = None
        src = self.pos_encoder(self.input_emb(src) * math.sqrt(self.ninp))
        return F.log_softmax(self.decoder(self.encoder(src, mask=self.src_mask)), dim=-1)


def batchify(data, bsz):
    nbatch = data.size(0) // bsz
    return data.narrow(0, 0, nbatch * bsz).view(bsz, -1).t().contiguous()


def repackage_hidden(h):
    """The hidden state without its history."""
    return h.detach() if isinstance(h, torch.Tensor) else tuple(repackage_hidden(v) for v in h)


def get_batch(source, i, bptt):
    seq_len = min(bptt, len(source) - 1 - i)
    return source[i : i + seq_len], source[i + 1 : i + 1 + seq_len].view(-1)


def evaluate(args, model, data, ntokens):
    model.eval()
    total = 0.0
    hidden = None if args.model == "Transformer" else model.init_hidden(data.size(1))
    with torch.no_grad():
        for i in range(0, data.size(0) - 1, args.bptt):
            inputs, targets = get_batch(data, i, args.bptt)
            if hidden is None:
                output = model(inputs).view(-1, ntokens)
            else:
                output, hidden = model(inputs, hidden)
                hidden = repackage_hidden(hidden)
            total += len(inputs) * F.nll_loss(output, targets).item()
    return total / (len(data) - 1)


def train(args, model, data, ntokens, lr):
    model.train()
    total, count = 0.0, 0
    hidden = None if args.model == "Transformer" else model.init_hidden(args.batch_size)
    for i in range(0, data.size(0) - 1, args.bptt):
        inputs, targets = get_batch(data, i, args.bptt)
        model.zero_grad()
        if hidden is None:
            output = model(inputs).view(-1, ntokens)
        else:
            hidden = repackage_hidden(hidden)
            output, hidden = model(inputs, hidden)
        loss = F.nll_loss(output, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
        for p in model.parameters():
            if p.grad is not None:
                p.data.add_(p.grad, alpha=-lr)
        total, count = total + loss.item(), count + 1
    return total / count


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="LSTM", help="RNN_TANH, RNN_RELU, LSTM, GRU or Transformer")
    parser.add_argument("--emsize", type=int, default=24)
    parser.add_argument("--nhid", type=int, default=24)
    parser.add_argument("--nlayers", type=int, default=2)
    parser.add_argument("--nhead", type=int, default=2)
    parser.add_argument("--lr", type=float, default=4)
    parser.add_argument("--clip", type=float, default=0.5)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=8, metavar="N")
    parser.add_argument("--bptt", type=int, default=12)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--tied", action="store_true")
    parser.add_argument("--seed", type=int, default=1111)
    parser.add_argument("--save", default="")
    parser.add_argument("--onnx-export", default="")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    corpus = Corpus()
    ntokens = len(corpus.dictionary)
    train_data, val_data = batchify(corpus.train, args.batch_size), batchify(corpus.valid, 4)
    if args.model == "Transformer":
        model = TransformerModel(ntokens, args.emsize, args.nhead, args.nhid, args.nlayers, args.dropout)
    else:
        model = RNNModel(args.model, ntokens, args.emsize, args.nhid, args.nlayers, args.dropout, args.tied)
    lr, best = args.lr, None
    try:
        for epoch in range(1, args.epochs + 1):
            start = time.time()
            loss = train(args, model, train_data, ntokens, lr)
            val = evaluate(args, model, val_data, ntokens)
            print(
                f"epoch {epoch} loss {loss:.6f} valid loss {val:.6f} ppl {math.exp(val):.2f} ({time.time() - start:.2f}s)"
            )
            if best is None or val < best:
                best = val
                if args.save:
                    with open(args.save, "wb") as f:
                        torch.save(model, f)
            else:
                lr /= 4.0
    except KeyboardInterrupt:
        print("Exiting from training early")
    if args.save:
        with open(args.save, "rb") as f:
            model = torch.load(f, weights_only=False)
            if args.model in ["RNN_TANH", "RNN_RELU", "LSTM", "GRU"]:
                model.rnn.flatten_parameters()  # after loading the weights lie apart
        print(f"best loss {evaluate(args, model, val_data, ntokens):.6f}")
    if args.onnx_export:
        print(f"The model is also exported in ONNX format at {os.path.realpath(args.onnx_export)}.")
        torch.onnx.export(model, (torch.zeros(args.bptt, 1, dtype=torch.long), model.init_hidden(1)), args.onnx_export)


if __name__ == "__main__":
    main()
