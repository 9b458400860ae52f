"""What people look at: figures, and one self-contained HTML page."""

from calibrant.report.page import Entry, write_report
from calibrant.report.plots import confidence_histogram, figure_svg, reliability_diagram

__all__ = ["Entry", "confidence_histogram", "figure_svg", "reliability_diagram", "write_report"]
