"""News in four topics, title and description."""

from calibrant.data.catalog.base import Dataset
from calibrant.data.layouts import ClassFirst, named_columns
from calibrant.data.sources import FolderSource, HubSource

AGNEWS = Dataset(
    "agnews",
    "Zhang et al. (2015), Character-level Convolutional Networks for Text Classification",
    "research use, as its publisher states",
    (
        FolderSource("agnews", (ClassFirst(2, ("World", "Sports", "Business", "Sci/Tech")), named_columns)),
        HubSource("fancyzhx/ag_news"),
    ),
    about="News in four topics, title and first lines.",
)
