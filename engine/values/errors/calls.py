"""Errors of a call: something that `step` does not accept, or not at this place."""

from engine.values.errors.base import RepriseError, shown


class StepConfigError(RepriseError, ValueError):
    """A step was called with an option that does not exist, or with a value that breaks its rule.

    Correct the call: the message quotes the value and states the rule. Inside a handler the instance ends as
    errored; deploy the corrected code and restart it.
    """

    def __init__(self, option: str, value: object, rule: str, *, what: str = "Step options") -> None:
        self.option = option
        self.value = shown(value)
        self.rule = rule
        super().__init__(f'{what}: "{option}" is {self.value}. {rule}')


class StepArgumentsError(RepriseError, TypeError):
    """A step's function cannot be called with the arguments that were given for it; it was not called.

    Give the function's arguments after it, or as kwargs={…}, and leave out `ctx`, which the engine fills in.
    """

    def __init__(self, step: str, function: str, given: int, problem: str) -> None:
        self.step = step
        self.function = function
        self.problem = problem
        count = "1 argument" if given == 1 else f"{given} arguments"
        super().__init__(
            f'Step "{step}" cannot call {function} with {count}: {problem}. Give its arguments after it: '
            "step.do(name, fn, *args, kwargs={...}). A parameter named ctx is filled in."
        )


class ParkingError(RepriseError):
    """A durable operation was called inside a step's body, where it cannot be.

    Call it in the handler, before or after that step. Only `step.do` and `step.run` may be called inside an async
    body.
    """

    RULE = (
        "where the instance cannot be parked. Call it from the workflow's handler, before or after that step."
    )

    def __init__(self, operation: str, step: str, body: str, *, rule: str = RULE) -> None:
        self.operation = operation
        self.step = step
        self.body = body
        called = f'step.{operation}("{step}")' if step else f"step.{operation}"
        super().__init__(f'{called} was called inside the body of step "{body}", {rule}')


class BetweenStepsError(RepriseError):
    """A handler did between its steps what only the body of a step may do: start an instance, change one, or use
    the database.

    Put the call into the body of a step: `await step.do(name, fn)`. To start another workflow, use `step.spawn` or
    `step.run_workflow`.
    """

    def __init__(self, what: str, advice: str) -> None:
        self.what = what
        super().__init__(f"{what} in a workflow's handler, where every replay would repeat it. {advice}")


class NotAwaitedError(RepriseError, AttributeError, TypeError):
    """The result of a durable call was used, and the call was not awaited.

    Write `await` before the call that the message names.
    """

    def __init__(self, step: str, use: str, call: str) -> None:
        self.step = step
        self.use = use
        super().__init__(
            f'Step "{step}" was called without `await`, and its result is not available yet: {use}. '
            f'Write: await {call}("{step}", …).'
        )
