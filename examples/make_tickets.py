"""Write the made-up messages that the notebooks use:  python examples/make_tickets.py

One message in six is about two things, and its queue is that of either. So no model can be right always.
"""

import csv
import random
from pathlib import Path

FOLDER = Path(__file__).parent
OPENINGS = ["", "", "Hello, ", "Hi, ", "Good morning. ", "Please help: ", "Urgent: ", "I have a question. "]
ENDINGS = [
    "",
    "",
    " Thanks.",
    " What can I do?",
    " Please answer soon.",
    " This is the second time.",
    " Any idea?",
]
QUEUES = {
    "billing": """my card was charged twice for order {n}
I was billed {n} euros but the price was lower
the invoice for {month} is missing
I want my money back for order {n}
can I pay by bank transfer instead of card
the discount code did not change the total
why is there a fee of {n} euros on my receipt
my refund from {month} has not arrived
please send the invoice to our accounting department
the payment failed but the amount left my bank""",
    "shipping": """my parcel with order {n} has not arrived
the tracking page has shown nothing new since {month}
the courier left the box at the wrong house
can you deliver to another address
the delivery is {n} days late
the parcel came back to you, please send it again
I was not at home when the driver came
how long does delivery to Norway take
two of the three boxes are lost
the package was open and one item is missing""",
    "account": """I cannot log in since {month}
the reset link for my password does not work
my account is locked after {n} attempts
I want to change the email address of my profile
the code for signing in never arrives
please delete my account and my data
someone else signed in to my account
my username is taken although I never registered
how do I turn on two-step login
the app logs me out every {n} minutes""",
    "device": """the screen stays black after {n} minutes
the battery is empty after {n} hours
the charger gets very hot
there is a loud noise from the fan
the button on the side is stuck
the device does not connect to wifi
the cable is broken after one week
the speaker crackles since the update in {month}
the camera shows only grey stripes
it switches itself off when I move it""",
}
OTHER = """Which planet has the most moons?
The goalkeeper saved two penalties in {month}.
Boil the pasta for {n} minutes and add the sauce.
The committee votes on the new railway line in {month}.
A violin has four strings.
Glaciers in the north have lost {n} metres.
She read the sonnet twice and closed the book.
The enzyme splits starch into sugar.
Tickets for the opera in {month} are sold out.
The hikers reached the summit after {n} hours."""
MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]


def fill(text: str, draw: random.Random) -> str:
    return text.format(n=draw.randint(2, 90), month=draw.choice(MONTHS))


def ticket(draw: random.Random) -> tuple[str, str]:
    queue = draw.choice(list(QUEUES))
    text = fill(draw.choice(QUEUES[queue].splitlines()), draw)
    if draw.random() < 1 / 6:
        other = draw.choice([name for name in QUEUES if name != queue])
        text += ", and " + fill(draw.choice(QUEUES[other].splitlines()), draw)
        queue = draw.choice([queue, other])
    opening = draw.choice(OPENINGS)
    if not opening.endswith((", ", ": ")):
        text = text[0].upper() + text[1:]
    return opening + text + "." + draw.choice(ENDINGS), queue


def write(name: str, heading: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    with open(FOLDER / name, "w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([heading, *rows])


def main() -> None:
    draw, tickets = random.Random(0), dict[str, str]()
    while len(tickets) < 740:
        tickets.setdefault(*ticket(draw))
    rows = list(tickets.items())
    write("tickets.csv", ("text", "label"), rows[:240])
    write("tickets-dev.csv", ("text", "label"), rows[240:540])
    write("tickets-test.csv", ("text", "label"), rows[540:])
    strays = sorted({fill(draw.choice(OTHER.splitlines()), draw) for _ in range(120)})
    write("other.csv", ("text",), [(text,) for text in strays[:60]])


if __name__ == "__main__":
    main()
