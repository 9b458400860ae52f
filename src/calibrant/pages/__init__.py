"""What people look at: figures, and one self-contained HTML page."""

from calibrant.pages.page import Entry, write_report
from calibrant.pages.plots import confidence_histogram, figure_svg, reliability_diagram

__all__ = ["Entry", "confidence_histogram", "figure_svg", "reliability_diagram", "write_report"]
