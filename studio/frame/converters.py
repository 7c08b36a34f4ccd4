"""Path converters. Invalid names get a 404 before any query runs."""


class WorkflowName:
    regex = r"[A-Za-z0-9_][A-Za-z0-9_-]{0,63}"

    def to_python(self, value: str) -> str:
        return value

    def to_url(self, value: str) -> str:
        return value


class InstanceId:
    regex = r"[A-Za-z0-9_][A-Za-z0-9_-]{0,99}"

    def to_python(self, value: str) -> str:
        return value

    def to_url(self, value: str) -> str:
        return value


class StepNumber:
    regex = r"[0-9]{1,9}"

    def to_python(self, value: str) -> int:
        return int(value)

    def to_url(self, value: int) -> str:
        return str(value)
