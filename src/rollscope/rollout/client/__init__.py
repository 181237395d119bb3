"""Clients with the manners of openai's SDK, which keep every answer for training."""

from rollscope.rollout.client.errors import (
    AnswerTooLarge,
    EndpointError,
    EndpointTimeout,
    EndpointUnavailable,
    MalformedAnswer,
    RequestRefused,
    TornStream,
)
from rollscope.rollout.client.http_engine import HttpEngine
from rollscope.rollout.client.interaction import Interaction
from rollscope.rollout.client.limits import token_limit
from rollscope.rollout.client.local import RolloutClient
from rollscope.rollout.client.remote import OpenAIClient
from rollscope.rollout.client.reply import TimeLimits
from rollscope.rollout.client.retrying import RetryRule

__all__ = [
    "AnswerTooLarge",
    "EndpointError",
    "EndpointTimeout",
    "EndpointUnavailable",
    "HttpEngine",
    "Interaction",
    "MalformedAnswer",
    "OpenAIClient",
    "RequestRefused",
    "RetryRule",
    "RolloutClient",
    "TimeLimits",
    "TornStream",
    "token_limit",
]
