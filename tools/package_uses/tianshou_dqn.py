"""DQN of tianshou: steps by returns over three moves from what an environment without chance gave, and its policy saved."""

import io

import gymnasium as gym
import numpy as np
import same
import torch
from tianshou.algorithm import DQN
from tianshou.algorithm.modelfree.dqn import DiscreteQLearningPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Batch, ReplayBuffer
from tianshou.utils.net.common import Net
from tianshou.utils.torch_utils import policy_within_training_step

draws, env = np.random.default_rng(0), gym.make("CartPole-v1")
net = same.weights(Net(state_shape=(4,), action_shape=2, hidden_sizes=(16, 16)), 0.3)
policy = DiscreteQLearningPolicy(model=net, action_space=env.action_space, eps_training=0.0, eps_inference=0.0)
agent = DQN(
    policy=policy, optim=AdamOptimizerFactory(lr=1e-3), gamma=0.9, n_step_return_horizon=3, target_update_freq=5
)
moves = ReplayBuffer(200)
seen, _ = env.reset(seed=0)
for i in range(120):
    act = int(draws.integers(2))
    after, reward, ended, cut, _ = env.step(act)
    moves.add(Batch(obs=seen, act=act, rew=reward, terminated=ended, truncated=cut, obs_next=after, info={}))
    seen = env.reset(seed=i)[0] if ended or cut else after
found = []
with policy_within_training_step(policy):
    for i in range(10):
        np.random.seed(i)
        found.append(agent.update(buffer=moves, sample_size=32).loss)
file = io.BytesIO()
torch.save(policy.state_dict(), file)
file.seek(0)
policy.load_state_dict(torch.load(file))
values = policy(Batch(obs=same.data(5, 4).numpy(), info={})).logits
same.report([*found, *values.detach().flatten().tolist(), *(p.detach().abs().sum().item() for p in net.parameters())])
