"""Distributed programs as the tutorial on writing them has them: messages, groups, a partitioned set, gradients averaged by
all_reduce and by a ring of send and recv.  One multiprocessing.Process is started for each rank."""

import os
from random import Random

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim


class Partition(object):
    def __init__(self, data, index):
        self.data, self.index = data, index

    def __len__(self):
        return len(self.index)

    def __getitem__(self, index):
        return self.data[self.index[index]]


class DataPartitioner(object):
    def __init__(self, data, sizes=(0.7, 0.2, 0.1), seed=1234):
        self.data, self.partitions = data, []
        rng = Random()
        rng.seed(seed)
        indexes = list(range(len(data)))
        rng.shuffle(indexes)
        for frac in sizes:
            part_len = int(frac * len(data))
            self.partitions.append(indexes[:part_len])
            indexes = indexes[part_len:]

    def use(self, partition):
        return Partition(self.data, self.partitions[partition])


class Net(nn.Module):
    def __init__(self):
        super(Net, self).__init__()
        self.conv1 = nn.Conv2d(1, 4, kernel_size=3)
        self.fc1 = nn.Linear(36, 5)

    def forward(self, x):
        x = F.relu(F.max_pool2d(self.conv1(x), 2))
        return F.log_softmax(self.fc1(x.flatten(1)), dim=1)


def blocking(rank, size):
    tensor = torch.zeros(1)
    if rank == 0:
        tensor += 1
        dist.send(tensor=tensor, dst=1)
    else:
        dist.recv(tensor=tensor, src=0)
    assert tensor[0] == 1


def non_blocking(rank, size):
    tensor = torch.zeros(1)
    if rank == 0:
        tensor += 1
        req = dist.isend(tensor=tensor, dst=1)
    else:
        req = dist.irecv(tensor=tensor, src=0)
    req.wait()
    assert tensor[0] == 1


def all_reduce_in_a_group(rank, size):
    group = dist.new_group([0, 1])
    tensor = torch.ones(1)
    dist.all_reduce(tensor, op=dist.ReduceOp.SUM, group=group)
    assert tensor[0] == 2


def average_gradients(model):
    size = float(dist.get_world_size())
    for param in model.parameters():
        dist.all_reduce(param.grad.data, op=dist.ReduceOp.SUM)
        param.grad.data /= size


def allreduce(send, recv):
    """A ring: what came from the left goes on to the right."""
    rank, size = dist.get_rank(), dist.get_world_size()
    send_buff, accum = send.clone(), send.clone()
    recv_buff = torch.zeros_like(send)
    left, right = ((rank - 1) + size) % size, (rank + 1) % size
    for i in range(size - 1):
        if i % 2 == 0:
            send_req = dist.isend(send_buff, right)
            dist.recv(recv_buff, left)
            accum[:] += recv_buff[:]
        else:
            send_req = dist.isend(recv_buff, right)
            dist.recv(send_buff, left)
            accum[:] += send_buff[:]
        send_req.wait()
    recv[:] = accum[:]


def ring_gradients(model):
    size = float(dist.get_world_size())
    for param in model.parameters():
        allreduce(param.grad.data.clone(), param.grad.data)
        param.grad.data /= size


def pictures():
    generator = torch.Generator().manual_seed(7)
    return [(torch.randn(1, 8, 8, generator=generator) + k % 5, k % 5) for k in range(64)]


def train(rank, size, average):
    torch.manual_seed(1234)
    partition = DataPartitioner(pictures(), [1.0 / size for _ in range(size)]).use(rank)
    train_set = torch.utils.data.DataLoader(partition, batch_size=16 // size, shuffle=True)
    model = Net()
    optimizer = optim.SGD(model.parameters(), lr=0.05, momentum=0.5)
    losses = []
    for _ in range(4):
        epoch_loss = 0.0
        for data, target in train_set:
            optimizer.zero_grad()
            loss = F.nll_loss(model(data), target)
            epoch_loss += loss.item()
            loss.backward()
            average(model)
            optimizer.step()
        losses.append(epoch_loss / len(train_set))
    assert losses[-1] < losses[0]
    return losses


def run(rank, size):
    blocking(rank, size)
    non_blocking(rank, size)
    all_reduce_in_a_group(rank, size)
    a, b = train(rank, size, average_gradients), train(rank, size, ring_gradients)
    assert max(abs(p - q) for p, q in zip(a, b)) < 1e-5, (a, b)
    print("well", rank, flush=True)


def init_process(rank, size, fn, backend="gloo"):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = "29532"
    dist.init_process_group(backend, rank=rank, world_size=size)
    fn(rank, size)
    dist.destroy_process_group()


if __name__ == "__main__":
    world_size = 2
    processes = []
    mp.set_start_method("spawn")
    for rank in range(world_size):
        p = mp.Process(target=init_process, args=(rank, world_size, run))
        p.start()
        processes.append(p)
    for p in processes:
        p.join()
    assert all(p.exitcode == 0 for p in processes)
