"""W106: code between steps writes, sends or asks the world. W113: code in a `finally:` of a handler does."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from engine.lints.code import WRAPPERS, Code
from engine.lints.finding import Found
from engine.lints.flow import TRIES

VERBS = ("delete", "get", "head", "options", "patch", "post", "put", "request")
CLIENTS = {
    "requests": ("Session", "session"),
    "httpx": ("Client", "AsyncClient"),
    "aiohttp": ("ClientSession",),
}
HTTP = {
    "urllib.request.urlopen",
    "urllib.request.urlretrieve",
    "httpx.stream",
    "aiohttp.request",
    *(f"{library}.{verb}" for library in ("requests", "httpx") for verb in VERBS),
    *(
        f"{library}.{client}().{verb}"
        for library, clients in CLIENTS.items()
        for client in clients
        for verb in (*VERBS, "send", "stream")
    ),
}
MAIL = {
    *(f"django.core.mail.{name}" for name in ("send_mail", "send_mass_mail", "mail_admins", "mail_managers")),
    "django.core.mail.EmailMessage().send",
    "django.core.mail.EmailMultiAlternatives().send",
    *(f"smtplib.{kind}().{send}" for kind in ("SMTP", "SMTP_SSL") for send in ("sendmail", "send_message")),
}
WRITES = ("bulk_create", "bulk_update", "create", "delete", "get_or_create", "update", "update_or_create")
MANAGER_WRITES = {*WRITES, *(f"a{name}" for name in WRITES)}
SAVE_OPTIONS = {"force_insert", "force_update", "using", "update_fields"}
STARTS = ("astart", "astart_many", "aget_or_start", "asend_event")


def find(code: Code) -> Iterator[Found]:
    for node in code.between():
        what = _effect(code, node)
        if what is None:
            continue
        if _is_in_finally(code, node):
            message = (
                f"{what} in a `finally:`, which runs whenever the instance leaves a worker: at every wait."
            )
            yield Found("W113", node, message, "Do it in a step after the `try`, or as the step's rollback.")
        else:
            hint = "Put it in the body of a step: `await step.do(name, fn)`."
            if isinstance(node, ast.Call) and _method(node) in STARTS:
                hint = "Start children by `step.spawn` or `step.run_workflow`; do anything else in the body of a step."
            yield Found("W106", node, f"{what} between steps, and so again on every replay.", hint)


def _effect(code: Code, node: ast.AST) -> str | None:
    """Say what a call does to the world; None if that is nothing, or not known."""
    if not isinstance(node, ast.Call):
        return None
    function = _called(code, node)
    called = code.resolve(function) or ""
    if called in HTTP:
        return f"`{called}()` makes an HTTP call"
    if called in MAIL:
        return f"`{called}()` sends mail"
    if not isinstance(function, ast.Attribute) or called.startswith("<"):
        return None
    if function.attr in MANAGER_WRITES and _is_of_manager(function.value):
        return f"`{ast.unparse(function.value)[:60]}.{function.attr}()` writes to the database"
    if function.attr in ("save", "asave") and _saves(node, function):
        return f"`{ast.unparse(function)[:60]}()` writes"
    if function.attr in STARTS:
        return f"`{ast.unparse(function)[:60]}()` starts or sends something"
    return None


def _called(code: Code, call: ast.Call) -> ast.expr:
    """Return the function that runs: in `sync_to_async(f)(x)` and `asyncio.to_thread(f, x)` it is f."""
    if isinstance(call.func, ast.Call) and code.resolve(call.func.func) in WRAPPERS and call.func.args:
        return call.func.args[0]
    if code.resolve(call.func) == "asyncio.to_thread" and call.args:
        return call.args[0]
    return call.func


def _is_of_manager(node: ast.expr) -> bool:
    """Tell whether there is an `.objects` in what a method is called of."""
    while True:
        match node:
            case ast.Attribute(attr="objects" | "_default_manager" | "_base_manager"):
                return True
            case ast.Attribute(value=value) | ast.Subscript(value=value):
                node = value
            case ast.Call(func=func):
                node = func
            case _:
                return False


def _saves(call: ast.Call, function: ast.Attribute) -> bool:
    """Tell a model's `save()` from that of other things, which says where to."""
    if call.func is not function:
        return True  # handed to a thread, as a model's must be
    return not call.args and {one.arg for one in call.keywords} <= SAVE_OPTIONS


def _method(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _is_in_finally(code: Code, node: ast.AST) -> bool:
    while node not in code.frames and node in code.names.parents:
        inner, node = node, code.names.parents[node]
        if isinstance(node, TRIES) and inner in node.finalbody:
            return True
    return False
