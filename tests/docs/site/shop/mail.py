from shop import calls


def send(to: str, text: str) -> None:
    calls.append(("mail", to, text))
