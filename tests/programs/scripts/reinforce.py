"""REINFORCE on a pole that is balanced on a cart, whose physics is in this file."""

import argparse
import math
import random
from collections import deque
from itertools import count

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.distributions import Categorical


class CartPole:
    def reset(self, seed=None):
        if seed is not None:
            self.random = random.Random(seed)
        self.state = [self.random.uniform(-0.05, 0.05) for _ in range(4)]
        return np.array(self.state, dtype=np.float32), {}

    def step(self, action):
        x, v, angle, turn = self.state
        force = 10.0 if action == 1 else -10.0
        temp = (force + 0.05 * turn**2 * math.sin(angle)) / 1.1
        accel = (9.8 * math.sin(angle) - math.cos(angle) * temp) / (0.5 * (4 / 3 - 0.1 * math.cos(angle) ** 2 / 1.1))
        v_accel = temp - 0.05 * accel * math.cos(angle) / 1.1
        self.state = [x + 0.02 * v, v + 0.02 * v_accel, angle + 0.02 * turn, turn + 0.02 * accel]
        done = abs(self.state[0]) > 2.4 or abs(self.state[2]) > 0.21
        return np.array(self.state, dtype=np.float32), 1.0, done, False, {}


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1 = nn.Linear(4, 32)
        self.dropout = nn.Dropout(p=0.0)
        self.affine2 = nn.Linear(32, 2)
        self.saved_log_probs = []
        self.rewards = []

    def forward(self, x):
        x = F.relu(self.dropout(self.affine1(x)))
        return F.softmax(self.affine2(x), dim=1)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gamma", type=float, default=0.99)
    parser.add_argument("--seed", type=int, default=543)
    parser.add_argument("--episodes", type=int, default=12)
    parser.add_argument("--log-interval", type=int, default=3)
    args = parser.parse_args()
    env = CartPole()
    torch.manual_seed(args.seed)
    policy = Policy()
    optimizer = optim.Adam(policy.parameters(), lr=1e-2)
    eps = np.finfo(np.float32).eps.item()

    def select_action(state):
        state = torch.from_numpy(state).float().unsqueeze(0)
        m = Categorical(policy(state))
        action = m.sample()
        policy.saved_log_probs.append(m.log_prob(action))
        return action.item()

    def finish_episode():
        R, policy_loss, returns = 0, [], deque()
        for r in policy.rewards[::-1]:
            R = r + args.gamma * R
            returns.appendleft(R)
        returns = torch.tensor(returns)
        returns = (returns - returns.mean()) / (returns.std() + eps)
        for log_prob, R in zip(policy.saved_log_probs, returns, strict=True):
            policy_loss.append(-log_prob * R)
        optimizer.zero_grad()
        policy_loss = torch.cat(policy_loss).sum()
        policy_loss.backward()
        optimizer.step()
        del policy.rewards[:]
        del policy.saved_log_probs[:]
        return policy_loss.item()

    running_reward = 10
    env.reset(seed=args.seed)
    for i_episode in count(1):
        state, _ = env.reset()
        ep_reward = 0
        for _ in range(1, 200):
            state, reward, done, _, _ = env.step(select_action(state))
            policy.rewards.append(reward)
            ep_reward += reward
            if done:
                break
        running_reward = 0.05 * ep_reward + (1 - 0.05) * running_reward
        loss = finish_episode()
        if i_episode % args.log_interval == 0:
            print(f"Episode {i_episode}\tlast reward {ep_reward:.2f}\taverage {running_reward:.2f}\tloss {loss:.6f}")
        if i_episode >= args.episodes:
            break


if __name__ == "__main__":
    main()
