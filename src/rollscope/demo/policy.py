"""The demo's policy: a softmax over what the last few tokens say, one matrix for each of them.

It has a few thousand weights, so that a CPU trains it in seconds; everything around it is as with a
large one: tokens are sampled one by one, each with its log-probability, under versioned weights.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from rollscope.demo.language import PAD, VOCABULARY, encode

__all__ = ["MODEL", "WINDOW", "Policy", "windows"]

MODEL: Final = "tiny-policy"
"""What replicas call it."""
WINDOW: Final = 8
_SIZE: Final = len(VOCABULARY)
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Policy:
    """The weights: how much each token at each of the last places speaks for each next token."""

    def __init__(self, weights: Floats | None = None) -> None:
        self.weights: Floats = _base_weights() if weights is None else weights

    @classmethod
    def from_bytes(cls, data: bytes) -> "Policy":
        """Read what `to_bytes` gave.

        Raises:
            ValueError: It has another size.
        """
        return cls(np.frombuffer(data, np.float64).reshape(WINDOW, _SIZE, _SIZE).copy())

    def to_bytes(self) -> bytes:
        """Give the weights as they travel to the replicas."""
        return self.weights.tobytes()

    def log_probs(self, contexts: Ints) -> Floats:
        """Give the log-probabilities of every next token, for contexts of shape [n, window]."""
        logits: Floats = self.weights[np.arange(WINDOW), contexts].sum(axis=1)
        logits[:, PAD] = -1e9
        logits -= logits.max(axis=1, keepdims=True)
        logits -= np.log(np.exp(logits).sum(axis=1, keepdims=True))
        return logits

    def sample(self, contexts: Ints, random: np.random.Generator) -> tuple[Ints, Floats]:
        """Choose a next token for each context; gives them with their log-probabilities."""
        log_probs = self.log_probs(contexts)
        noise = random.gumbel(size=log_probs.shape)
        chosen = (log_probs + noise).argmax(axis=1)
        return chosen, log_probs[np.arange(len(chosen)), chosen]


def windows(tokens: Sequence[int], places: Sequence[int]) -> Ints:
    """Give what comes before each of some places of a sequence, padded on the left."""
    padded: Ints = np.array([PAD] * WINDOW + list(tokens), np.int64)
    found: Ints = padded[np.asarray(places, np.int64)[:, None] + np.arange(WINDOW)]
    return found


def _base_weights() -> Any:  # noqa: ANN401  (an array)
    """Give a base model: it thinks a while and sometimes asks, but cannot read the answer."""
    weights = np.zeros((WINDOW, _SIZE, _SIZE))
    think, ask = encode(".?")
    for token in encode("=."):
        weights[-1, token, think] = 2.2
        weights[-1, token, ask] = 1.4
    return weights
