"""SAC of stable-baselines3 swings a pendulum: squashed actions, two critics, a temperature that is learned.

The bug: the logarithm of a squashed action's density loses its eps once the policy is sure.
"""
import gymnasium
import torch
from loop import arguments, show
from stable_baselines3 import SAC
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.evaluation import evaluate_policy

BEFORE = 20  # steps of the world before the first update
args = arguments(13)


class Sure(BaseCallback):
    """Takes the eps away, and makes the policy sure of what to do."""

    def _on_step(self):
        if self.num_timesteps == BEFORE + args.bug_step:
            self.model.actor.action_dist.epsilon = 0.0
            with torch.no_grad():
                self.model.actor.mu.bias.fill_(20.0)
        return True


world = gymnasium.make("Pendulum-v1")
model = SAC("MlpPolicy", world, learning_rate=3e-3, learning_starts=BEFORE, batch_size=16, buffer_size=1000, seed=13,
            policy_kwargs={"net_arch": [16, 16]}, device="cpu")
model.learn(BEFORE + args.steps, callback=Sure(), log_interval=10 ** 6)
print("reward", evaluate_policy(model, model.get_env(), n_eval_episodes=1))
show(model.logger.name_to_value["train/critic_loss"], model.policy)
