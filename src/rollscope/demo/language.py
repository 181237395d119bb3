"""The demo's task in its own small language: two numbers to multiply, a calculator to ask.

A prompt is `37*46=`. The model may think (`.`), ask the calculator (`?`, which then writes its
result as `1702:`), and answers with four digits and `$`. Nothing tells it to ask, nor how to read.
"""

from collections.abc import Sequence
from random import Random
from typing import Final

__all__ = [
    "ANSWER_LEN",
    "ASK",
    "END",
    "PAD",
    "VOCABULARY",
    "decode",
    "encode",
    "make_problem",
    "rate",
    "solve",
]

VOCABULARY: Final = "0123456789*=.?:$_"
_IDS: Final = {letter: number for number, letter in enumerate(VOCABULARY)}
ASK: Final = _IDS["?"]
END: Final = _IDS["$"]
PAD: Final = _IDS["_"]
ANSWER_LEN: Final = 4


def encode(text: str) -> list[int]:
    """Give the tokens of a text; each letter is one."""
    return [_IDS[letter] for letter in text]


def decode(tokens: Sequence[int]) -> str:
    """Give the text of tokens."""
    return "".join(VOCABULARY[token] for token in tokens)


def make_problem(random: Random) -> str:
    """Give the text of a product of two numbers with two digits."""
    return f"{random.randint(10, 99)}*{random.randint(10, 99)}"


def solve(problem: str) -> str:
    """Give the right answer."""
    left, right = problem.split("*")
    return f"{int(left) * int(right):0{ANSWER_LEN}d}"


def rate(problem: str, answer: str) -> float:
    """Give the share of digits that are right; an answer of another length is worth half of it."""
    truth = solve(problem)
    right = sum(ours == theirs for ours, theirs in zip(answer, truth, strict=False))
    return right / ANSWER_LEN * (1.0 if len(answer) == ANSWER_LEN else 0.5)
