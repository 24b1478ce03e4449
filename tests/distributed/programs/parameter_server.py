"""A parameter server by send and recv: rank 0 takes gradients from whoever has some, steps, and sends parameters back."""

import torch
import torch.distributed as dist
from torch import nn, optim
from torch.nn.utils import parameters_to_vector, vector_to_parameters

DONE = 1


def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))


def server(net):
    optimizer = optim.SGD(net.parameters(), lr=0.1)
    workers, served = dist.get_world_size() - 1, 0
    word = torch.zeros(1, dtype=torch.int64)
    while workers:
        worker = dist.recv(word)  # from anyone
        if word.item() == DONE:
            workers -= 1
            continue
        flat = torch.empty(sum(p.numel() for p in net.parameters()))
        dist.recv(flat, src=worker)
        optimizer.zero_grad()
        place = 0
        for p in net.parameters():
            p.grad = flat[place : place + p.numel()].view_as(p).clone()
            place += p.numel()
        optimizer.step()
        served += 1
        dist.send(parameters_to_vector(net.parameters()).detach(), dst=worker)
    return served


def worker(net, steps):
    word = torch.zeros(1, dtype=torch.int64)
    generator = torch.Generator().manual_seed(dist.get_rank())
    losses = []
    for _ in range(steps):
        x = torch.randn(32, 6, generator=generator)
        loss = (net(x) - x.sum(1, keepdim=True)).square().mean()
        net.zero_grad()
        loss.backward()
        losses.append(loss.item())
        dist.send(word, dst=0)
        dist.send(torch.cat([p.grad.flatten() for p in net.parameters()]), dst=0)
        flat = torch.empty(sum(p.numel() for p in net.parameters()))
        dist.recv(flat, src=0)
        with torch.no_grad():
            vector_to_parameters(flat, net.parameters())
    dist.send(word + DONE, dst=0)
    assert losses[-1] < losses[0] / 4, losses


def main(steps=60):
    dist.init_process_group("gloo")
    rank, net = dist.get_rank(), model()
    if rank == 0:
        assert server(net) == steps * (dist.get_world_size() - 1)
    else:
        worker(net, steps)
    dist.barrier()
    print("well", rank, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
