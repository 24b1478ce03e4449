"""Style transfer: a picture is optimized until its features are those of one picture and their correlations those of another."""

from __future__ import print_function

import argparse
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim


class ContentLoss(nn.Module):
    def __init__(self, target):
        super(ContentLoss, self).__init__()
        self.target = target.detach()

    def forward(self, input):
        self.loss = F.mse_loss(input, self.target)
        return input


def gram_matrix(input):
    a, b, c, d = input.size()
    features = input.view(a * b, c * d)
    return torch.mm(features, features.t()).div(a * b * c * d)


class StyleLoss(nn.Module):
    def __init__(self, target_feature):
        super(StyleLoss, self).__init__()
        self.target = gram_matrix(target_feature).detach()

    def forward(self, input):
        self.loss = F.mse_loss(gram_matrix(input), self.target)
        return input


class Normalization(nn.Module):
    def __init__(self, mean, std):
        super(Normalization, self).__init__()
        self.mean = mean.clone().detach().view(-1, 1, 1)
        self.std = std.clone().detach().view(-1, 1, 1)

    def forward(self, img):
        return (img - self.mean) / self.std


def get_style_model_and_losses(
    cnn, mean, std, style_img, content_img, content_layers=("conv_2",), style_layers=("conv_1", "conv_2", "conv_3")
):
    normalization = Normalization(mean, std)
    content_losses, style_losses = [], []
    model = nn.Sequential(normalization)
    i = 0
    for layer in cnn.children():
        if isinstance(layer, nn.Conv2d):
            i += 1
            name = "conv_{}".format(i)
        elif isinstance(layer, nn.ReLU):
            name = "relu_{}".format(i)
            layer = nn.ReLU(inplace=False)
        elif isinstance(layer, nn.AvgPool2d):
            name = "pool_{}".format(i)
        else:
            raise RuntimeError("Unrecognized layer: {}".format(layer.__class__.__name__))
        model.add_module(name, layer)
        if name in content_layers:
            target = model(content_img).detach()
            content_losses.append(ContentLoss(target))
            model.add_module("content_loss_{}".format(i), content_losses[-1])
        if name in style_layers:
            style_losses.append(StyleLoss(model(style_img).detach()))
            model.add_module("style_loss_{}".format(i), style_losses[-1])
    for i in range(len(model) - 1, -1, -1):
        if isinstance(model[i], ContentLoss) or isinstance(model[i], StyleLoss):
            break
    return model[: (i + 1)], style_losses, content_losses


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--num-steps", type=int, default=25)
    parser.add_argument("--style-weight", type=float, default=20000)
    parser.add_argument("--tv-weight", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    y, x = torch.meshgrid(torch.linspace(0, 9, 20), torch.linspace(0, 9, 20), indexing="ij")
    style_img = torch.stack([(x.sin() + 1) / 2, (x.cos() + 1) / 2, torch.full_like(x, 0.5)])[None]
    content_img = ((y - 4.5) ** 2 + (x - 4.5) ** 2 < 9).float().expand(1, 3, -1, -1).clone()
    cnn = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(inplace=True), nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(inplace=True),
                        nn.AvgPool2d(2), nn.Conv2d(8, 12, 3, padding=1), nn.ReLU(inplace=True)).eval()  # fmt: skip
    mean, std = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
    input_img = content_img.clone()
    model, style_losses, content_losses = get_style_model_and_losses(
        copy.deepcopy(cnn), mean, std, style_img, content_img
    )
    input_img.requires_grad_(True)
    model.eval()
    model.requires_grad_(False)
    optimizer = optim.LBFGS([input_img], max_iter=10)
    run = [0]
    while run[0] <= args.num_steps:

        def closure():
            with torch.no_grad():
                input_img.clamp_(0, 1)
            optimizer.zero_grad()
            model(input_img)
            style_score = sum(sl.loss for sl in style_losses) * args.style_weight
            content_score = sum(cl.loss for cl in content_losses)
            tv = (input_img[..., 1:] - input_img[..., :-1]).abs().mean() + (input_img.diff(dim=2)).abs().mean()
            loss = style_score + content_score + args.tv_weight * tv
            loss.backward()
            run[0] += 1
            if run[0] % 10 == 1:
                print(
                    "run {}: style loss {:6f} content loss {:6f}".format(
                        run[0], style_score.item(), content_score.item()
                    )
                )
            return style_score + content_score

        optimizer.step(closure)
    with torch.no_grad():
        input_img.clamp_(0, 1)
    print("picture loss {:.6f}".format(input_img.mean().item()))


if __name__ == "__main__":
    main()
