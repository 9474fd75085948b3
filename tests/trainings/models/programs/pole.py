"""PPO of stable-baselines3 keeps a pole upright: standardised observations and rewards, evaluations between.

The bug: the learning rate of the last rounds is 1e30.
"""
import gymnasium
from loop import arguments, show
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

ROUND = 8  # updates between two rollouts
args = arguments(12)
rounds, bug_round = args.steps // ROUND, args.bug_step // ROUND


def rate(left):
    """`left` goes from 1 to 0."""
    return 1e30 if args.bug_step >= 0 and (1 - left) * rounds > bug_round else 3e-3 * left


world = VecNormalize(DummyVecEnv([lambda: gymnasium.make("CartPole-v1")] * 2))
model = PPO("MlpPolicy", world, learning_rate=rate, n_steps=32, batch_size=32, n_epochs=4, target_kl=None, seed=12,
            ent_coef=0.01, policy_kwargs={"net_arch": [16, 16]}, device="cpu")
for part in (rounds // 2, rounds - rounds // 2):
    model.learn(part * 64, log_interval=10 ** 6, reset_num_timesteps=False)
    print("reward", evaluate_policy(model, world, n_eval_episodes=2, deterministic=False))
show(model.logger.name_to_value["train/loss"], model.policy)
