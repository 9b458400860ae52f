"""Reviews of businesses on Yelp, the polarity set: 38,000 test texts, as the paper prints."""

from calibrant.data.catalog.base import Dataset
from calibrant.data.layouts import ClassFirst, named_columns
from calibrant.data.sources import FolderSource, HubSource

YELP = Dataset(
    "yelp",
    "Zhang et al. (2015), Character-level Convolutional Networks for Text Classification",
    "research use, as its publisher states",
    (FolderSource("yelp", (ClassFirst(1), named_columns)), HubSource("fancyzhx/yelp_polarity")),
    sizes={"test": 38_000},
    about="Reviews of businesses, positive or negative.",
)
