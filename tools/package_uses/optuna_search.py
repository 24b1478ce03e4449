"""A search over learning rates and widths, trials pruned by their losses"""

import optuna
import same
import torch

optuna.logging.set_verbosity(optuna.logging.ERROR)
x, y = same.data(32, 4), same.data(32, 1, seed=1)


def objective(trial):
    width, lr = trial.suggest_int("width", 2, 8), trial.suggest_float("lr", 1e-3, 1e-1, log=True)
    model = same.weights(
        torch.nn.Sequential(torch.nn.Linear(4, width), torch.nn.Tanh(), torch.nn.Linear(width, 1)), 0.3
    )
    optimizer = getattr(torch.optim, trial.suggest_categorical("optimizer", ["Adam", "SGD"]))(model.parameters(), lr=lr)
    for step in range(6):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        trial.report(round(loss.item(), 4), step)
        if trial.should_prune():
            raise optuna.TrialPruned
    return loss.item()


study = optuna.create_study(
    sampler=optuna.samplers.RandomSampler(seed=0), pruner=optuna.pruners.MedianPruner(n_startup_trials=2)
)
study.optimize(objective, n_trials=8)
same.report(
    [study.best_value, study.best_params["lr"], study.best_params["width"], *(t.state.value for t in study.trials)]
)
