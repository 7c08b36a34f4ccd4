from shop import calls


def reserve(number: str) -> str:
    calls.append(("reserve", number))
    return "shelf 7"


def release(number: str) -> None:
    calls.append(("release", number))


def ship(number: str, box: str) -> None:
    calls.append(("ship", number, box))
