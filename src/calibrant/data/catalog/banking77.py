"""Questions of customers to a bank, 77 intents: many classes, short text."""

from calibrant.data.catalog.base import Dataset
from calibrant.data.sources import FolderSource, HubSource

BANKING77 = Dataset(
    "banking77",
    "Casanueva et al. (2020), Efficient Intent Detection with Dual Sentence Encoders",
    "CC-BY 4.0",
    (FolderSource("banking77"), HubSource("mteb/banking77", label="label_text")),
    ood="yahoo",
    about="Questions of customers to a bank, 77 intents.",
)
