"""Training with TRL as steps, metrics, and the phases `generate` and `reward`.

    trainer = GRPOTrainer(..., reward_funcs=traced_reward(fn), callbacks=[RollscopeCallback()])

`transformers` is imported when the callback is made, and `trl` never: it is used if it is there.
"""

from rollscope.integrations.trl.callback import RollscopeCallback
from rollscope.integrations.trl.rewards import traced_reward

__all__ = ["RollscopeCallback", "traced_reward"]
