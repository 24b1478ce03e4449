"""Policies of reinforcement learning: values and losses of PPO and DQN on an environment without chance."""

import io

import gymnasium as gym
import numpy as np
import same
import torch
from stable_baselines3 import DQN, PPO


class Corridor(gym.Env):
    observation_space = gym.spaces.Box(-1, 1, (3,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def reset(self, seed=None, options=None):
        self.at = 0
        return self.seen(), {}

    def seen(self):
        return np.array([self.at / 5, np.sin(self.at), 1], np.float32)

    def step(self, action):
        self.at += 1 if action else -1
        return self.seen(), float(self.at), abs(self.at) >= 5, False, {}


found = []
agent = PPO("MlpPolicy", Corridor(), n_steps=16, batch_size=16, n_epochs=1, seed=0, device="cpu")
same.weights(agent.policy)
agent.learn(16)
obs = torch.tensor(np.stack([[0, 0, 1], [0.2, 0.8, 1]]).astype(np.float32))
same.weights(agent.policy)
values, logp, entropy = agent.policy.evaluate_actions(obs, torch.tensor([0, 1]))
found += [values.sum().item(), logp.sum().item(), entropy.sum().item(), int(agent.num_timesteps)]
action, _ = agent.predict(obs.numpy(), deterministic=True)
found += action.tolist()
q = DQN("MlpPolicy", Corridor(), learning_starts=4, batch_size=4, seed=0, device="cpu", train_freq=1)
q.learn(12)
same.weights(q.q_net)
found += q.q_net(obs).flatten().tolist()
file = io.BytesIO()
agent.save(file)
file.seek(0)
again = PPO.load(file, device="cpu")
found.append(again.policy.predict_values(obs).sum().item())
same.report(found)
