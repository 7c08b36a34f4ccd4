from engine import RollbackContext
from shop import calls

missing_boxes = 0  # how many of the next orders cannot be shipped


def reserve(number: str) -> str:
    calls.append(("reserve", number))
    return "shelf 7"


def release(ctx: RollbackContext) -> None:
    calls.append(("release", ctx.output))


def ship(number: str, box: str) -> None:
    global missing_boxes
    if missing_boxes:
        missing_boxes -= 1
        raise LookupError(f"There is no box {box} left.")
    calls.append(("ship", number, box))
