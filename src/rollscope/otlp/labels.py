"""Labels of a metric: short text, few of them."""

from typing import Final

from rollscope.instrument.sanitise import clean_text
from rollscope.otlp.forms import Attrs

__all__ = ["labels_of"]

_MOST: Final = 32
_BYTES: Final = 256


def labels_of(attrs: Attrs) -> dict[str, str]:
    """Give the attributes of a point as labels, in the order of their names."""
    texts = {clean_text(key, _BYTES): _text(value) for key, value in attrs.items()}
    return dict(sorted(texts.items())[:_MOST])


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return clean_text(value if isinstance(value, str) else str(value), _BYTES)
