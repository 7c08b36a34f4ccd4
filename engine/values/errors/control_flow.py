"""The ends that a handler raises: BaseExceptions, so that `except Exception` in a handler does not catch them."""


class ControlFlow(BaseException):
    """The handler ends here; swallowed by a bare `except`, it takes effect at the next operation."""


class FailWorkflow(ControlFlow):
    def __init__(self, message: str) -> None:
        self.message = message
        super().__init__(message)


class AbortWorkflow(ControlFlow):
    def __init__(self, reason: str = "") -> None:
        self.reason = reason
        super().__init__(reason)


class CompleteWorkflow(ControlFlow):
    def __init__(self, output: object = None) -> None:
        self.output = output
        super().__init__("The workflow is complete.")
