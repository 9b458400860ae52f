"""Encoders, and how they are taken apart.

Importing the package makes its own architectures known to the Auto classes of transformers.
"""

from calibrant.models import t5, textcnn

__all__ = ["t5", "textcnn"]
