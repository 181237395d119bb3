"""Rewards, worked out in processes that may hang or die without harm to the trainer."""

from rollscope.rollout.reward.failure import RewardFailed
from rollscope.rollout.reward.pool import close_pools, default_workers
from rollscope.rollout.reward.wrapper import AsyncRewardWrapper

__all__ = ["AsyncRewardWrapper", "RewardFailed", "close_pools", "default_workers"]
