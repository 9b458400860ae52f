"""Texts of several connections share batches."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from calibrant.service.batcher import SLICE, Batcher, Full
from support.tiny import corpus


def run(asking, answer=lambda texts: [text.upper() for text in texts], size=64, limit=1000):
    """What the coroutine ``asking(batcher)`` returns, and the batches."""
    batches = []

    def noted(texts):
        batches.append(list(texts))
        return answer(texts)

    async def whole():
        batcher = Batcher(noted, size, limit)
        job = asyncio.create_task(batcher.run())
        try:
            return await asyncio.wait_for(asking(batcher), 20)
        finally:
            assert batcher.waiting == 0
            job.cancel()

    return asyncio.run(whole()), batches


def test_those_who_ask_at_once_share_a_batch():
    async def asking(batcher):
        return await asyncio.gather(batcher.ask(["a", "b"]), batcher.ask(["c"]), batcher.ask(["d"]))

    answers, batches = run(asking)
    assert answers == [["A", "B"], ["C"], ["D"]]
    assert batches == [["a", "b", "c", "d"]]


def test_while_a_batch_is_under_way_the_next_one_gathers():
    go = threading.Event()

    def slow(texts):
        go.wait(10)
        return texts

    async def asking(batcher):
        first = asyncio.create_task(batcher.ask(["first"]))
        await asyncio.sleep(0.05)
        others = [asyncio.create_task(batcher.ask([str(i)])) for i in range(10)]
        await asyncio.sleep(0.05)
        go.set()
        return await asyncio.gather(first, *others)

    answers, batches = run(asking, slow)
    assert batches == [["first"], [str(i) for i in range(10)]]
    assert answers == [["first"], *([str(i)] for i in range(10))]


def test_many_texts_take_turns_with_a_few():
    async def asking(batcher):
        many = batcher.ask([f"many {i}" for i in range(100)])
        return await asyncio.gather(many, batcher.ask(["one"]))

    answers, batches = run(asking, size=SLICE + 4)
    assert "one" in batches[0]
    assert answers[0] == [f"MANY {i}" for i in range(100)]
    assert max(map(len, batches)) == SLICE + 4


def test_what_does_not_fit_is_refused_at_once():
    async def asking(batcher):
        fits = asyncio.create_task(batcher.ask(["a"] * 5))
        await asyncio.sleep(0)
        with pytest.raises(Full):
            await batcher.ask(["b"])
        return await fits

    assert run(asking, limit=5)[0] == ["A"] * 5


def test_whoever_stops_waiting_is_not_answered():
    go = threading.Event()

    def slow(texts):
        go.wait(10)
        return texts

    async def asking(batcher):
        first = asyncio.create_task(batcher.ask(["first"]))
        await asyncio.sleep(0.05)
        gone = asyncio.create_task(batcher.ask(["gone"] * 100))
        stays = asyncio.create_task(batcher.ask(["stays"]))
        await asyncio.sleep(0.01)
        gone.cancel()
        await asyncio.sleep(0.01)
        assert batcher.waiting == 1
        go.set()
        return await asyncio.gather(first, stays)

    assert run(asking, slow) == ([["first"], ["stays"]], [["first"], ["stays"]])


def test_a_failure_reaches_all_of_the_batch_and_nobody_else():
    def fail_once(texts):
        if "bad" in texts:
            raise RuntimeError("no")
        return texts

    async def asking(batcher):
        both = batcher.ask(["bad"] * (SLICE + 1)), batcher.ask(["good"])
        first = await asyncio.gather(*both, return_exceptions=True)
        return [*first, await batcher.ask(["later"])]

    (bad, good, later), _ = run(asking, fail_once)
    assert isinstance(bad, RuntimeError)
    assert isinstance(good, RuntimeError)
    assert later == ["later"]


def connections(client, texts, eight=8):
    """The answers to texts that are asked one by one over eight connections."""

    def one(text):
        response = client.post("/predict", json={"texts": text})
        return response.json()["answers"][0]

    with ThreadPoolExecutor(eight) as pool:
        return list(pool.map(one, texts))


def test_eight_connections_get_the_bits_of_predict_on_their_batch(client):
    asked = client()
    service, batches = asked.app.state.service, []
    answer = service.batcher._answer
    service.batcher._answer = lambda texts: batches.append(list(texts)) or answer(texts)
    texts = [text for text, _ in corpus(200, seed=9)]
    answers = dict(zip(texts, connections(asked, texts), strict=True))
    assert len(batches) < len(texts)  # several connections shared a batch
    classifier = service.current.model.classifier
    for batch in batches:
        for text, decision in zip(batch, classifier.predict(batch, threshold=0.5), strict=True):
            answer = answers[text]
            assert (answer["label"], answer["confidence"], answer["familiarity"], answer["abstain"]) == (
                decision.label,
                decision.confidence,
                decision.familiarity,
                decision.abstain,
            )


def test_with_batches_of_one_they_get_the_bits_of_predict_on_each_text(client):
    asked = client(batch=1)
    classifier = asked.app.state.service.current.model.classifier
    texts = [text for text, _ in corpus(60, seed=9)]
    for text, answer in zip(texts, connections(asked, texts), strict=True):
        (decision,) = classifier.predict([text], threshold=0.5)
        assert (answer["confidence"], answer["familiarity"]) == (decision.confidence, decision.familiarity)
