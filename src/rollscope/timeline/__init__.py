"""The timeline of a run: what the canvas is fed from.

`TimelineIndex` holds every span in its lane and row; its frames, tiles, overviews, areas and
lookups are made here. It knows nothing of HTTP and draws nothing.
"""

from rollscope.timeline.changes import DeltaTooOld
from rollscope.timeline.frame import ViewFrame, decode_frame
from rollscope.timeline.grouping import GROUPINGS
from rollscope.timeline.index import TimelineIndex
from rollscope.timeline.tiles import TileQuery

__all__ = [
    "GROUPINGS",
    "DeltaTooOld",
    "TileQuery",
    "TimelineIndex",
    "ViewFrame",
    "decode_frame",
]
