"""Questions to Yahoo! Answers, whole and cut into 8 familiar and 2 unfamiliar topics."""

from calibrant.data.catalog.base import Dataset
from calibrant.data.layouts import ClassFirst, named_columns
from calibrant.data.sources import FolderSource, HubSource

_TOPICS = (  # in the order of their ids: the first 8 are the familiar ones
    "Society & Culture",
    "Science & Mathematics",
    "Health",
    "Education & Reference",
    "Computers & Internet",
    "Sports",
    "Business & Finance",
    "Entertainment & Music",
    "Family & Relationships",
    "Politics & Government",
)
_CITATION = "Zhang et al. (2015), Character-level Convolutional Networks for Text Classification"
_LICENCE = "research use, as its publisher states"
_TEXT = "a question's title, content and best answer"
_SOURCES = (
    FolderSource("yahoo", (ClassFirst(3, _TOPICS), named_columns)),
    HubSource(
        "community-datasets/yahoo_answers_topics",
        text=("question_title", "question_content", "best_answer"),
        label="topic",
    ),
)

# 2,000 questions a topic for training and 500 for dev, as in the paper: the public set has 140,000.
YAHOO = Dataset(
    "yahoo",
    _CITATION,
    _LICENCE,
    _SOURCES,
    classes=_TOPICS,
    ood="yelp",
    sizes={"train": 25_000, "test": 60_000},
    text=_TEXT,
    about="Questions and answers in ten topics.",
)
YAHOO_8 = Dataset(
    "yahoo-8",
    _CITATION,
    _LICENCE,
    _SOURCES,
    classes=_TOPICS[:8],
    ood="yahoo-2",
    sizes={"train": 20_000, "test": 48_000},
    text=_TEXT,
    about="Eight of the ten topics of yahoo.",
)
YAHOO_2 = Dataset(
    "yahoo-2",
    _CITATION,
    _LICENCE,
    _SOURCES,
    classes=_TOPICS[8:],
    sizes={"test": 12_000},
    text=_TEXT,
    about="The other two topics of yahoo: family and politics.",
)
