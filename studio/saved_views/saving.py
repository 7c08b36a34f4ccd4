"""Save, change and delete views. What is done to a shared one is in the audit trail."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import IntegrityError, connection, transaction
from django.db.models import Max, QuerySet
from django.db.models.functions import Now
from django.utils.crypto import get_random_string
from django.utils.text import slugify

from engine.steer import audit
from studio.access import denied_audit
from studio.access.denied_audit import Subject
from studio.access.permissions import RefusedError, Verb
from studio.models import SavedView
from studio.saved_views import rules
from studio.saved_views.queries import may_change, may_share
from studio.saved_views.rules import InvalidViewError
from studio.saved_views.search import Search

# Verbs in the audit trail. Views belong to no workflow, so their rows name none.
CREATE, CHANGE, MOVE, DELETE = "view-create", "view-change", "view-move", "view-delete"
_SUFFIX = "abcdefghijkmnpqrstuvwxyz23456789"  # without what looks alike
_LONGEST_WORD = 60
# Two people who save at once must not exceed the limit together, or get the same place.
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"


def save(name: str, search: Search, *, by: Any, is_shared: bool = False) -> SavedView:
    """Save a view at the end of the others. Raises InvalidViewError, and RefusedError if `by` may not share views."""
    name = name.strip()
    rules.check_name(name)
    if is_shared and not may_share(by):
        _refuse(CREATE, by, name)
    rules.check_search(search)
    view = SavedView(
        name=name,
        slug=_slug_for(name),
        owner=None if is_shared else by,
        made_by=by,
        is_shared=is_shared,
        **search.fields,
    )
    with transaction.atomic():
        others = _others(view)
        _check_room(view, others)
        view.position = (others.aggregate(last=Max("position"))["last"] or 0) + 1
        with _unique_name(view):
            view.save(force_insert=True)
        _note(CREATE, view, by)
    return view


def rename(view: SavedView, name: str, *, by: Any) -> None:
    """Give it another name; its address stays.

    Raises InvalidViewError, RefusedError, or SavedView.DoesNotExist if it has been deleted.
    """
    before, name = view.name, name.strip()
    if not may_change(by, view):
        _refuse(CHANGE, by, before)
    rules.check_name(name)
    view.name = name
    with transaction.atomic(), _unique_name(view):
        _change(view, name=name)
        _note(CHANGE, view, by, before=before)


def update(view: SavedView, search: Search, *, by: Any) -> None:
    """Save another search in it. Raises what `rename` raises."""
    if not may_change(by, view):
        _refuse(CHANGE, by, view.name)
    rules.check_search(search)
    view.query, view.sort, view.columns = search.query, search.sort, search.columns
    with transaction.atomic():
        _change(view, **search.fields)
        _note(CHANGE, view, by)


def delete(view: SavedView, *, by: Any) -> None:
    """Delete it. Its address leads to All from now on. Raises RefusedError."""
    if not may_change(by, view):
        _refuse(DELETE, by, view.name)
    with transaction.atomic():
        deleted, _ = SavedView.objects.filter(key=view.key).delete()
        if deleted:
            _note(DELETE, view, by)


def move(view: SavedView, *, by: Any, is_up: bool) -> None:
    """Exchange it with the view before or after it, if there is one. Raises RefusedError."""
    if not may_change(by, view):
        _refuse(MOVE, by, view.name)
    with transaction.atomic():
        others = list(_others(view).order_by("position", "key"))
        at = next((n for n, one in enumerate(others) if one.key == view.key), None)
        to = None if at is None else at + (-1 if is_up else 1)
        if at is None or to is None or not 0 <= to < len(others):
            return
        others[at], others[to] = others[to], others[at]
        for position, one in enumerate(others, start=1):
            one.position = position
        SavedView.objects.bulk_update(others, ["position"])
        _note(MOVE, view, by)


def _others(view: SavedView) -> QuerySet[SavedView]:
    """Lock the list that a view is in until the transaction ends, and return its views."""
    with connection.cursor() as cursor:
        cursor.execute(_LOCK, [f"studio saved views of {'all' if view.is_shared else view.owner_id}"])
    rows = SavedView.objects.filter(is_shared=view.is_shared)
    return rows if view.is_shared else rows.filter(owner_id=view.owner_id)


def _check_room(view: SavedView, others: QuerySet[SavedView]) -> None:
    most = rules.MOST_SHARED if view.is_shared else rules.MOST_OF_A_PERSON
    if others.count() >= most:
        kind = "shared" if view.is_shared else "personal"
        raise InvalidViewError("name", f"There are {most} {kind} views already. Delete one that is not used.")


def _change(view: SavedView, **values: str) -> None:
    if not SavedView.objects.filter(key=view.key).update(**values, changed_at=Now()):
        raise SavedView.DoesNotExist


@contextmanager
def _unique_name(view: SavedView) -> Iterator[None]:
    """Raise InvalidViewError if the block gives a view the name of another one."""
    try:
        with transaction.atomic():
            yield
    except IntegrityError as error:
        if not any(name in str(error) for name in ("studio_savedview_name", "studio_savedview_shared_name")):
            raise
        kind = "shared" if view.is_shared else "personal"
        said = f'There is a {kind} view named "{view.name}" already. Choose another name.'
        raise InvalidViewError("name", said) from None


def _slug_for(name: str) -> str:
    """Return a slug that no view had before: a link to a deleted view must not show another one."""
    word = slugify(name)[:_LONGEST_WORD].strip("-_").replace("_", "-") or "view"
    return f"{word}-{get_random_string(8, _SUFFIX)}"


def _note(verb: str, view: SavedView, by: Any, *, before: str = "") -> None:
    if view.is_shared:
        data = {"view": view.name, "slug": view.slug, **Search.of_view(view).fields}
        audit.note(verb, "", audit.Cause.of(by), data=data | ({"before": before} if before else {}))


def _refuse(verb: str, by: Any, name: str) -> None:
    denied_audit.record(verb, Subject("", data={"view": name[: rules.LONGEST_NAME]}), by)
    raise RefusedError(Verb.OPERATE, None)
