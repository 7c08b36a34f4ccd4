"""The arguments of a defined step: bound to its function's parameters, and validated by their annotations."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from pydantic import ConfigDict, PydanticUserError, TypeAdapter, ValidationError

from engine.declare.handler import annotation_of
from engine.values.errors import DeclarationError, InvalidParamsError, ParamError
from engine.values.serialization import adapter_for, show_path
from engine.values.signatures import parameters_of

_VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_REQUIRED = inspect.Parameter.empty
# A class unknown to pydantic is checked with isinstance: arguments are passed on, not stored.
_CONFIG = ConfigDict(arbitrary_types_allowed=True)


@dataclass(frozen=True, slots=True)
class StepArguments:
    """The parameters of a function without `ctx`, and the validators of those that have a type."""

    signature: inspect.Signature
    adapters: Mapping[str, TypeAdapter[Any]]

    @classmethod
    def of(cls, function: FunctionType, *, what: str) -> StepArguments:
        """Read a function. Raises DeclarationError for an annotation that cannot be used."""
        parameters = [
            one
            for one in inspect.signature(function).parameters.values()
            if one.name != "ctx" or one.kind in _VARIABLE
        ]
        adapters = {
            one.name: _adapter(function, one.name, what=what)
            for one in parameters
            if one.annotation is not inspect.Parameter.empty
        }
        return cls(inspect.Signature(parameters), adapters)

    def validate(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], *, what: str
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments as their declared types. Raises InvalidParamsError that lists every wrong one."""
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as problem:
            raise InvalidParamsError(self._misfits(args, kwargs, problem), what=what) from None
        errors: list[ParamError] = []
        for name, value in bound.arguments.items():
            if name in self.adapters:
                bound.arguments[name] = self._checked(name, value, errors)
        if errors:
            raise InvalidParamsError(errors, what=what)
        return bound.args, bound.kwargs

    def _checked(self, name: str, value: Any, errors: list[ParamError]) -> Any:
        adapter = self.adapters[name]
        match self.signature.parameters[name].kind:
            case inspect.Parameter.VAR_POSITIONAL:
                return tuple(_valid(adapter, one, [name, at], errors) for at, one in enumerate(value))
            case inspect.Parameter.VAR_KEYWORD:
                return {key: _valid(adapter, one, [key], errors) for key, one in value.items()}
            case _:
                return _valid(adapter, value, [name], errors)

    def _misfits(self, args: tuple[Any, ...], kwargs: dict[str, Any], problem: TypeError) -> list[ParamError]:
        try:
            given = self.signature.bind_partial(*args, **kwargs).arguments
        except TypeError:
            message = f"{str(problem).capitalize()}. The step takes {parameters_of(self.signature)}."
            return [ParamError(path="args", message=message, code="unexpected")]
        return [
            ParamError(
                path=_path([name]),
                message=f"It is missing. The step takes {parameters_of(self.signature)}.",
                code="missing",
            )
            for name in self._missing(given)
        ]

    def _missing(self, given: Mapping[str, Any]) -> Iterator[str]:
        for name, parameter in self.signature.parameters.items():
            if name not in given and parameter.default is _REQUIRED and parameter.kind not in _VARIABLE:
                yield name


def _adapter(function: FunctionType, name: str, *, what: str) -> TypeAdapter[Any]:
    annotation = annotation_of(function, name, what=what)
    try:
        return _adapt(annotation)
    except Exception as problem:  # pydantic runs hooks of the annotated classes
        reason = str(problem).split("\n", 1)[0][:500]
        rule = f"Its type must be one that pydantic validates. {reason}"
        raise DeclarationError(what, f"argument `{name}`", rule) from problem


def _adapt(annotation: Any) -> TypeAdapter[Any]:
    try:
        return adapter_for(annotation, _CONFIG)
    except PydanticUserError as problem:
        if problem.code != "type-adapter-config-unused":
            raise
        return adapter_for(annotation)  # a model or a dataclass has a configuration of its own


def _valid(adapter: TypeAdapter[Any], value: Any, at: list[str | int], errors: list[ParamError]) -> Any:
    try:
        return adapter.validate_python(value)
    except ValidationError as problem:
        errors += [
            ParamError(path=_path([*at, *error["loc"]]), message=error["msg"], code=error["type"])
            for error in problem.errors(include_url=False, include_context=False, include_input=False)
        ]
    except Exception as problem:  # noqa: BLE001 - a validator of the declared type: the user's code
        message = f"Its validator raised {type(problem).__qualname__}: {problem}"
        errors.append(ParamError(path=_path(at), message=message, code="validator_failed"))
    return None


def _path(parts: list[str | int]) -> str:
    return f"args{show_path(parts)[1:]}"
