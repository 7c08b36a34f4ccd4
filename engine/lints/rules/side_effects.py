"""W106: side effects or reads between steps. W113: the same in a `finally:` of a handler."""

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
READS = ("aggregate", "count", "earliest", "exists", "first", "get", "in_bulk", "iterator", "last", "latest")
MANAGER_READS = {*READS, *(f"a{name}" for name in READS)}
READERS = {
    f"django.shortcuts.{prefix}get_{what}_or_404" for prefix in ("", "a") for what in ("object", "list")
}
REFRESHES = ("refresh_from_db", "arefresh_from_db")
# Functions that iterate over their argument, and so query the database for a queryset.
GOES_THROUGH = (
    "all",
    "any",
    "bool",
    "dict",
    "frozenset",
    "len",
    "list",
    "max",
    "min",
    "set",
    "sorted",
    "sum",
    "tuple",
)
LOOPS = (ast.For, ast.AsyncFor, ast.comprehension)
SAVE_OPTIONS = {"force_insert", "force_update", "using", "update_fields"}
STARTS = ("start_many", "get_or_start", "astart", "astart_many", "aget_or_start", "send_event", "asend_event")
START = "start"  # also a method of threads, timers and servers
DECORATORS = ("engine.workflow", "engine.decorators.workflow")
REGISTRY = ("engine.workflows[]", "engine.declare.registry.workflows[]")


def find(code: Code) -> Iterator[Found]:
    for node in code.between():
        what = _effect(code, node)
        if what is None:
            continue
        if _is_in_finally(code, node):
            message = (
                f"{what} in a `finally:`, which runs whenever the instance leaves a worker, so at every wait."
            )
            yield Found(
                "W113", _place(node), message, "Move it into a step after the `try`, or into a rollback."
            )
        else:
            hint = "Move it into the body of a step: `await step.do(name, fn)`."
            if isinstance(node, ast.Call) and _method(node) in (START, *STARTS):
                hint = "Start children with `step.spawn` or `step.run_workflow`. Move other calls into a step's body."
            yield Found("W106", _place(node), f"{what} between steps, so it repeats on every replay.", hint)


def _effect(code: Code, node: ast.AST) -> str | None:
    """Describe the side effect or read of a call. Return None if there is none, or it is unknown."""
    if isinstance(node, LOOPS):
        return _reads(node.iter) if _is_queryset(node.iter) else None
    if not isinstance(node, ast.Call):
        return None
    function = _called(code, node)
    called = code.resolve(function) or ""
    if called in HTTP:
        return f"`{called}()` makes an HTTP call"
    if called in MAIL:
        return f"`{called}()` sends mail"
    if called in READERS or (called in GOES_THROUGH and node.args and _is_queryset(node.args[0])):
        return _reads(node)
    if not isinstance(function, ast.Attribute) or called.startswith("<"):
        return None
    if function.attr in MANAGER_WRITES and _is_of_manager(function.value):
        return f"`{ast.unparse(function.value)[:60]}.{function.attr}()` writes to the database"
    if function.attr in REFRESHES or (function.attr in MANAGER_READS and _is_of_manager(function.value)):
        return _reads(function)
    if function.attr in ("save", "asave") and _saves(node, function):
        return f"`{ast.unparse(function)[:60]}()` writes to the database"
    if function.attr in STARTS or (function.attr == START and _is_workflow(code, function.value)):
        does = "sends an event" if "send_event" in function.attr else "starts a workflow"
        return f"`{ast.unparse(function)[:60]}()` {does}"
    return None


def _reads(node: ast.expr) -> str:
    call = "" if isinstance(node, ast.Call) else "()"
    return f"`{ast.unparse(node)[:60]}{call}` reads the database"


def _is_queryset(node: ast.expr) -> bool:
    """Return whether it is a queryset without a read of its own, which would be reported as such."""
    return isinstance(node, ast.Call) and _is_of_manager(node.func) and _method(node) not in MANAGER_READS


def _is_workflow(code: Code, node: ast.expr) -> bool:
    """Return whether an expression names a workflow of this module, an imported one, or one of the registry."""
    function = code.names.function(node)
    if isinstance(function, ast.AsyncFunctionDef):
        made_by = (one.func if isinstance(one, ast.Call) else one for one in function.decorator_list)
        return any(code.resolve(one) in DECORATORS for one in made_by)
    named = code.resolve(node) or ""
    return named in REGISTRY or ("." in named and named.rpartition(".")[2] in code.facts.handlers)


def _place(node: ast.AST) -> ast.AST:
    return node.iter if isinstance(node, LOOPS) else node


def _called(code: Code, call: ast.Call) -> ast.expr:
    """Return the function that runs: f in `sync_to_async(f)(x)` and `asyncio.to_thread(f, x)`."""
    if isinstance(call.func, ast.Call) and code.resolve(call.func.func) in WRAPPERS and call.func.args:
        return call.func.args[0]
    if code.resolve(call.func) == "asyncio.to_thread" and call.args:
        return call.args[0]
    return call.func


def _is_of_manager(node: ast.expr) -> bool:
    """Return whether the object of a method call contains `.objects`."""
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
    """Return whether a `save()` is a model's. Others take arguments such as a file."""
    if call.func is not function:
        return True  # passed to a thread, as is necessary for a model's
    return not call.args and {one.arg for one in call.keywords} <= SAVE_OPTIONS


def _method(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _is_in_finally(code: Code, node: ast.AST) -> bool:
    while node not in code.frames and node in code.names.parents:
        inner, node = node, code.names.parents[node]
        if isinstance(node, TRIES) and inner in node.finalbody:
            return True
    return False
