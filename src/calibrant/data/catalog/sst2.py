"""Sentences of film reviews, positive or negative."""

from calibrant.data.catalog.base import Dataset
from calibrant.data.sources import FolderSource, HubSource

SST_2 = Dataset(
    "sst-2",
    "Socher et al. (2013), Recursive Deep Models for Semantic Compositionality Over a Sentiment Treebank",
    "research use, as its publisher states",
    # Not stanfordnlp/sst2, whose test labels are withheld.
    (FolderSource("sst-2"), HubSource("SetFit/sst2", label="label_text")),
    about="Sentences of film reviews, positive or negative.",
)
