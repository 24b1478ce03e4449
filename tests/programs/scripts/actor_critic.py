"""Proximal policy optimization with an actor and a critic in a corridor whose end is to be found, in several environments at once."""

import argparse
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.distributions import Categorical, Normal
from torch.nn.utils import clip_grad_norm_


@dataclass
class Config:
    envs: int = 8
    steps: int = 16
    updates: int = 4
    epochs: int = 2
    minibatch: int = 32
    gamma: float = 0.97
    lam: float = 0.9
    clip: float = 0.2
    seed: int = 1


class Corridor:
    """Positions 0 to 9; a step to the right at the end is rewarded, and begins anew.  Noise is added to what is seen."""

    def __init__(self, n: int) -> None:
        self.at = torch.zeros(n, dtype=torch.long)

    def observe(self) -> Tensor:
        return torch.nn.functional.one_hot(self.at, 10).float() + 0.05 * torch.randn(len(self.at), 10)

    def step(self, action: Tensor) -> tuple[Tensor, Tensor]:
        self.at = (self.at + 2 * action - 1).clamp_(min=0)
        done = self.at >= 9
        reward = done.float() - 0.01
        self.at = torch.where(done, torch.zeros_like(self.at), self.at)
        return reward, done.float()


def layer_init(layer: nn.Linear, std: float = 2**0.5, bias: float = 0.0) -> nn.Linear:
    nn.init.orthogonal_(layer.weight, std)
    nn.init.constant_(layer.bias, bias)
    return layer


class Agent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.critic = nn.Sequential(layer_init(nn.Linear(10, 24)), nn.Tanh(), layer_init(nn.Linear(24, 1), std=1.0))
        self.actor = nn.Sequential(layer_init(nn.Linear(10, 24)), nn.Tanh(), layer_init(nn.Linear(24, 2), std=0.01))

    def get_value(self, x: Tensor) -> Tensor:
        return self.critic(x)

    def get_action_and_value(self, x: Tensor, action: Tensor | None = None):
        probs = Categorical(logits=self.actor(x))
        if action is None:
            action = probs.sample()
        return action, probs.log_prob(action), probs.entropy(), self.critic(x)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, value in vars(Config()).items():
        parser.add_argument(f"--{name}", type=type(value), default=value)
    cfg = Config(**vars(parser.parse_args()))
    torch.manual_seed(cfg.seed)
    torch.backends.cudnn.deterministic = True
    agent = Agent()
    optimizer = torch.optim.Adam(agent.parameters(), lr=0.01, eps=1e-5)
    anneal = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda k: 1 - k / cfg.updates)
    env = Corridor(cfg.envs)
    obs = torch.zeros((cfg.steps, cfg.envs, 10))
    actions = torch.zeros((cfg.steps, cfg.envs), dtype=torch.long)
    logprobs, rewards, dones, values = (torch.zeros((cfg.steps, cfg.envs)) for _ in range(4))
    for update in range(cfg.updates):
        for t in range(cfg.steps):
            obs[t] = env.observe()
            with torch.no_grad():
                actions[t], logprobs[t], _, value = agent.get_action_and_value(obs[t])
                values[t] = value.flatten()
            rewards[t], dones[t] = env.step(actions[t])
        with torch.no_grad():
            advantages, last = torch.zeros_like(rewards), 0
            following = agent.get_value(env.observe()).reshape(1, -1)
            for t in reversed(range(cfg.steps)):
                nextvalues = following if t == cfg.steps - 1 else values[t + 1]
                delta = rewards[t] + cfg.gamma * nextvalues * (1.0 - dones[t]) - values[t]
                advantages[t] = last = delta + cfg.gamma * cfg.lam * (1.0 - dones[t]) * last
            returns = advantages + values
        b_obs, b_logprobs, b_actions = obs.reshape((-1, 10)), logprobs.reshape(-1), actions.reshape(-1)
        b_advantages, b_returns = advantages.reshape(-1), returns.reshape(-1)
        for _ in range(cfg.epochs):
            for mb in torch.randperm(len(b_obs)).split(cfg.minibatch):
                _, newlogprob, entropy, newvalue = agent.get_action_and_value(b_obs[mb], b_actions[mb])
                ratio = (newlogprob - b_logprobs[mb]).exp()
                adv = b_advantages[mb]
                adv = (adv - adv.mean()) / (adv.std() + 1e-8)
                pg_loss = torch.max(-adv * ratio, -adv * torch.clamp(ratio, 1 - cfg.clip, 1 + cfg.clip)).mean()
                v_loss = 0.5 * ((newvalue.view(-1) - b_returns[mb]) ** 2).mean()
                loss = pg_loss - 0.01 * entropy.mean() + v_loss * 0.5
                optimizer.zero_grad()
                loss.backward()
                clip_grad_norm_(agent.parameters(), 0.5, error_if_nonfinite=True)
                optimizer.step()
        anneal.step()
        print(
            f"update {update} loss {loss.item():.6f} value loss {v_loss.item():.6f} reward {rewards.sum().item():.2f}"
        )
    assert Normal(torch.zeros(1), 1.0).log_prob(torch.zeros(1)).item() < 0


if __name__ == "__main__":
    main()
