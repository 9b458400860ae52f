"""Abstracts of Web of Science (WOS-46985), whole and cut into 100 familiar and 34 unfamiliar fields."""

from calibrant.data.catalog.base import Dataset
from calibrant.data.layouts import lines, named_columns
from calibrant.data.sources import FolderSource, HubSource

_CITATION = "Kowsari et al. (2017), HDLTex: Hierarchical Deep Learning for Text Classification"
_LICENCE = "research use, as its publisher states"
_SOURCES = (
    FolderSource("wos", (lines, named_columns)),
    # The repository itself is a loading script, which `datasets` no longer runs; the hub keeps its rows here.
    HubSource(
        "HDLTex/web_of_science", text=("input_data",), folder="WOS46985", revision="refs/convert/parquet"
    ),
)
_TEST_SHARE = 0.4  # 18,794 of 46,985
_IDS = tuple(map(str, range(134)))

WOS = Dataset(
    "wos",
    _CITATION,
    _LICENCE,
    _SOURCES,
    ood="agnews",
    test_share=_TEST_SHARE,
    about="Abstracts of research papers in 134 fields.",
)
WOS_100 = Dataset(
    "wos-100",
    _CITATION,
    _LICENCE,
    _SOURCES,
    classes=_IDS[:100],
    ood="wos-34",
    test_share=_TEST_SHARE,
    about="100 of the 134 fields of wos.",
)
WOS_34 = Dataset(
    "wos-34",
    _CITATION,
    _LICENCE,
    _SOURCES,
    classes=_IDS[100:],
    test_share=_TEST_SHARE,
    about="The other 34 fields of wos.",
)
