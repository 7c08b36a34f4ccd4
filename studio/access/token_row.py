"""Read a token, its owner, and what the owner may do in the Studio: one query for each request to the API."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, Permission, PermissionsMixin
from django.contrib.contenttypes.models import ContentType
from django.db import connection

from studio.access.verbs import Verb
from studio.models import Token

# What these backends grant, a query can tell. Any other backend is asked for each permission.
PLAIN_BACKENDS = frozenset(
    {
        "django.contrib.auth.backends.ModelBackend",
        "django.contrib.auth.backends.AllowAllUsersModelBackend",
    }
)
# The columns of the owner that are read; any other is read when it is asked for.
OWNER_FIELDS = ("password", "is_active", "is_superuser")
_OF_TOKEN = [field.attname for field in Token._meta.concrete_fields]
_JSON = ("verbs", "workflows")

_PERMISSIONS = """
ARRAY(SELECT p.codename FROM {permission} p JOIN {type} c ON c.id = p.content_type_id
       WHERE c.app_label = 'studio'
         AND (p.id IN (SELECT permission_id FROM {user_permission} WHERE {user_id} = u.{pk})
              OR p.id IN (SELECT gp.permission_id FROM {group_permission} gp
                            JOIN {user_group} ug ON ug.group_id = gp.group_id WHERE ug.{group_user_id} = u.{pk})))
"""


@dataclass(frozen=True, slots=True)
class Found:
    """A token as it is now. `granted` is None if only the project's own backends can tell."""

    row: Token
    now: datetime  # by the database's clock
    granted: frozenset[Verb] | None


def find(prefix: str) -> Found | None:
    """Return the token with a prefix, valid or not."""
    sql, owner_fields, has_permissions = _statement(tuple(settings.AUTHENTICATION_BACKENDS))
    with connection.cursor() as cursor:
        cursor.execute(sql, [prefix])
        values = cursor.fetchone()
    if values is None:
        return None
    size = len(_OF_TOKEN)
    given = dict(zip(_OF_TOKEN, values[:size], strict=True))
    row = Token.from_db(connection.alias, _OF_TOKEN, list(_decoded(given).values()))
    codenames = values[-1] if has_permissions else None
    if row.owner_id is not None:
        found = values[size + 1 : size + 1 + len(owner_fields)]
        row.owner = get_user_model().from_db(connection.alias, owner_fields, found)
    return Found(row, values[size], _granted(row, codenames))


def _decoded(given: Mapping[str, Any]) -> dict[str, Any]:
    # Django reads `jsonb` as text, and decodes it in its fields.
    return {
        name: json.loads(value) if name in _JSON and isinstance(value, str) else value
        for name, value in given.items()
    }


def _granted(row: Token, codenames: list[str] | None) -> frozenset[Verb] | None:
    if codenames is None or row.owner is None:
        return None
    if getattr(row.owner, "is_superuser", False):
        return frozenset(Verb)
    return frozenset(verb for verb in Verb if verb in codenames)


@lru_cache(maxsize=8)
def _statement(backends: tuple[str, ...]) -> tuple[str, list[str], bool]:
    """Return the query, the columns of the owner that it reads, and whether it reads permissions."""
    model: Any = get_user_model()
    quote = connection.ops.quote_name
    names = {model._meta.pk.name, model.USERNAME_FIELD, *OWNER_FIELDS}
    used = [
        field for field in model._meta.concrete_fields if field.name in names
    ]  # in the order of `from_db`
    is_plain = getattr(model, "has_perm", None) is PermissionsMixin.has_perm
    has_permissions = is_plain and PLAIN_BACKENDS.issuperset(backends)
    columns = [f"t.{quote(name)}" for name in _OF_TOKEN]
    columns += ["statement_timestamp()", *(f"u.{quote(field.column)}" for field in used)]
    if has_permissions:
        columns.append(_permissions(model))
    sql = f"""
        SELECT {", ".join(columns)}
          FROM {quote(Token._meta.db_table)} t
          LEFT JOIN {quote(model._meta.db_table)} u ON u.{quote(model._meta.pk.column)} = t.owner_id
         WHERE t.prefix = %s
    """  # noqa: S608  names of tables and columns
    return sql, [field.attname for field in used], has_permissions


def _permissions(model: Any) -> str:
    quote = connection.ops.quote_name
    of_user = model._meta.get_field("user_permissions").remote_field.through
    of_group = model._meta.get_field("groups").remote_field.through
    return _PERMISSIONS.format(
        permission=quote(Permission._meta.db_table),
        type=quote(ContentType._meta.db_table),
        user_permission=quote(of_user._meta.db_table),
        user_id=quote(model._meta.get_field("user_permissions").m2m_column_name()),
        group_permission=quote(Group._meta.get_field("permissions").m2m_db_table()),
        user_group=quote(of_group._meta.db_table),
        group_user_id=quote(model._meta.get_field("groups").m2m_column_name()),
        pk=quote(model._meta.pk.column),
    )
