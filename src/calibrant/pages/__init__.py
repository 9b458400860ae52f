"""What people look at: figures, and one self-contained HTML page."""

from calibrant.pages.entry import Entry
from calibrant.pages.figures import write_figures
from calibrant.pages.page import write_report
from calibrant.pages.plots import confidence_histogram, figure_svg, reliability_diagram

__all__ = [
    "Entry",
    "confidence_histogram",
    "figure_svg",
    "reliability_diagram",
    "write_figures",
    "write_report",
]
