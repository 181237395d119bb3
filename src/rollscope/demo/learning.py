"""The demo's trainer: group-relative policy optimisation with clipped ratios, in numpy."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from rollscope.demo.policy import Floats, Policy, windows

__all__ = ["Learner", "Update"]

_CLIP: Final = 0.2
_RATE: Final = 0.08
_DECAYS: Final = (0.9, 0.99)
_EPOCHS: Final = 3
_TINY: Final = 1e-6


class Update(NamedTuple):
    """What one update saw and did."""

    reward: float
    tokens: int
    clipped: float
    """The share of tokens whose ratio was outside of the bounds."""
    entropy: float


class Learner:
    """Holds the policy and its optimiser."""

    def __init__(self, policy: Policy | None = None) -> None:
        self.policy = policy or Policy()
        self.version = 0
        self._steps = 0
        self._means = np.zeros_like(self.policy.weights)
        self._squares = np.zeros_like(self.policy.weights)

    def update(self, groups: Sequence[Mapping[str, Any]]) -> Update:
        """Learn from groups of samples of one prompt each, and make a new version."""
        contexts, tokens, before, gains = [], [], [], []
        for group in groups:
            rewards = np.asarray(group["rewards"], np.float64)
            spread = rewards.std()
            advantages = (rewards - rewards.mean()) / (spread + _TINY)
            for row, advantage in enumerate(advantages):
                places = np.flatnonzero(np.asarray(group["loss_mask"][row]))
                ids = np.asarray(group["input_ids"][row])
                contexts.append(windows(ids.tolist(), places.tolist()))
                tokens.append(ids[places])
                before.append(np.asarray(group["logprobs"][row], np.float64)[places])
                gains.append(np.full(len(places), advantage))
        data = (
            np.concatenate(contexts),
            np.concatenate(tokens).astype(np.int64),
            np.concatenate(before),
            np.concatenate(gains),
        )
        for _ in range(_EPOCHS):
            told = self._climb(*data)
        self.version += 1
        return told._replace(reward=float(np.mean([np.mean(one["rewards"]) for one in groups])))

    def _climb(self, contexts: Any, tokens: Any, before: Floats, gains: Floats) -> Update:  # noqa: ANN401
        """Take one step of Adam up the clipped objective."""
        log_probs = self.policy.log_probs(contexts)
        rows = np.arange(len(tokens))
        ratios = np.exp(log_probs[rows, tokens] - before)
        is_cut = ((ratios > 1 + _CLIP) & (gains > 0)) | ((ratios < 1 - _CLIP) & (gains < 0))
        pull = np.where(is_cut, 0.0, ratios * gains) / len(tokens)
        probs = np.exp(log_probs)
        slope = -probs * pull[:, None]
        slope[rows, tokens] += pull
        gradient = np.zeros_like(self.policy.weights)
        for place in range(contexts.shape[1]):
            np.add.at(gradient[place], contexts[:, place], slope)
        self._apply(gradient)
        entropy = -float((probs * log_probs.clip(-50)).sum(axis=1).mean())
        return Update(0.0, len(tokens), float(is_cut.mean()), entropy)

    def _apply(self, gradient: Floats) -> None:
        first, second = _DECAYS
        self._means = first * self._means + (1 - first) * gradient
        self._squares = second * self._squares + (1 - second) * gradient**2
        self._steps += 1
        step = self._steps
        means, squares = self._means / (1 - first**step), self._squares / (1 - second**step)
        self.policy = Policy(self.policy.weights + _RATE * means / (np.sqrt(squares) + 1e-8))
