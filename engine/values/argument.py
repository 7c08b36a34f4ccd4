"""Say which argument of a call an error is about, so that an entrance can name the field that was sent."""

from engine.values.errors import InvalidNameError, InvalidParamsError, InvalidValueError, LimitError

_ABOUT_VALUES = (InvalidNameError, InvalidParamsError, InvalidValueError, LimitError)


class Argument:
    """Set `field` of what is raised about a value: `with Argument("params"): …`. The outermost name counts."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, _ABOUT_VALUES):
            error.field = self._name
