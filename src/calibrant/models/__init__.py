"""Encoders, and how they are taken apart.

Importing the package makes its own architectures known to the Auto classes of transformers.
"""

from calibrant.models import pooling, t5, textcnn

__all__ = ["pooling", "t5", "textcnn"]
