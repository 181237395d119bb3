"""The stages of a producer trace: what their names mean, and how they nest."""

import re
from typing import Final

from rollscope.importing.xtuner_pairs import Stage, What

__all__ = ["LABELS", "SAMPLE_LEVEL", "split_stage", "stage_of"]

SAMPLE_LEVEL: Final = 2
"""Of a sample as a whole."""
_STAGES: Final = {
    "xtuner.agent_loop.generate_group": Stage(1, is_shared=True),
    "xtuner.agent_loop.generate_sample": Stage(SAMPLE_LEVEL),
    "xtuner.rollout_controller.generate": Stage(3, "generate"),
    "xtuner.judger.judge": Stage(3, "reward"),
    "xtuner.rollout_worker.generate": Stage(4, "generate"),
    "xtuner.rollout_engine.generate": Stage(5, "generate"),
}
_REQUEST: Final = re.compile(r"xtuner\.[^.]+\.request")
LABELS: Final = {
    "xtuner.producer.sample_group": "sampler",
    "xtuner.producer.generate_group": "producer.generate",
    "xtuner.producer.put_generated_group": "producer.put",
    "xtuner.rollout_controller.generate": "rollout.generate",
    "xtuner.rollout_engine.generate": "engine.generate",
    "xtuner.judger.judge": "judger",
}
"""What XTuner's own viewer calls them."""
_ENDINGS: Final = {"start": What.START, "end": What.END, "error": What.ERROR}


def stage_of(name: str) -> Stage:
    """Say what a name of spans means."""
    if name.startswith("xtuner.producer."):
        return Stage(0, is_shared=True)
    return _STAGES.get(name) or Stage(6 if _REQUEST.fullmatch(name) else 7)


def split_stage(stage: str) -> tuple[str, int]:
    """Divide what an event says into the name of a span, and what happened to it."""
    name, _, ending = stage.rpartition(".")
    what = _ENDINGS.get(ending, What.INSTANT)
    return (name, what) if name and what != What.INSTANT else (stage, What.INSTANT)
