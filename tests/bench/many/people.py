"""Who buys in the made-up shop, what, and who works there."""

from __future__ import annotations

from random import Random

FIRST = ("Ana", "Bo", "Chloé", "Dmitri", "Emre", "Fatou", "Grace", "Hiro", "Inés", "Jürgen", "Kofi", "Łucja")
LAST = ("Novak", "Lindgren", "Okafor", "Sato", "García", "Müller", "Dubois", "Kowalska", "O'Brien", "Haddad")
REGIONS = ("eu-west", "eu-north", "us-east", "us-west", "ap-south")
ARTICLES = ("lamp-7", "teapot-2", "chair-41", "rug-19", "kettle-3", "shelf-88", "mug-5")
TAGS = ("vip", "eu", "priority", "gift", "pilot")
# People and programs that start instances; the others are started without a name.
STARTERS = ("shop-api", "shop-api", "shop-api", "ana", "zoe", "mobile-app")
OPERATORS = ("ana", "zoe", "tomasz", "priya")
WORKERS = tuple((number, f"worker-{number}:{2100 + number}") for number in range(1, 5))
SLOTS = 100


def params(rng: Random, number: int) -> str:
    """Return the params of an instance as JSON, written as the engine does."""
    items = ",".join(
        f'{{"sku":"{rng.choice(ARTICLES)}","quantity":{rng.randint(1, 5)}}}' for _ in range(1 + number % 3)
    )
    return (
        f'{{"region":"{REGIONS[number % 7 % 5]}","customer":"{rng.choice(FIRST)} {rng.choice(LAST)}",'
        f'"customer_id":"cus_{number * 7919 % 99_991}","total":{rng.randint(490, 99_000) / 100!r},"items":[{items}]}}'
    )


def tags(rng: Random) -> str:
    """Return the tags of an instance, as COPY reads an array; most have none."""
    if rng.random() < 0.7:
        return "{}"
    first = rng.choice(TAGS)
    return f"{{{first}}}" if rng.random() < 0.7 else f"{{{first},batch-{rng.randint(1, 400)}}}"
