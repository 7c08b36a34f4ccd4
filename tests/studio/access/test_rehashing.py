"""The hasher of passwords changes: Django stores the same password anew, and tokens stay. Another one ends them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth import authenticate
from django.contrib.auth.hashers import MD5PasswordHasher, PBKDF2PasswordHasher, make_password
from django.contrib.auth.models import User
from django.db import connection
from django.db.models.signals import post_save
from django.test import Client

from studio.access import tokens
from studio.models import Token
from tests.studio import factories

pytestmark = pytest.mark.django_db

OTHER = "another long password"


class Slower(PBKDF2PasswordHasher):
    iterations = 2


class SlowerStill(PBKDF2PasswordHasher):
    iterations = 3


def prefer(settings: Any, hasher: type) -> None:
    settings.PASSWORD_HASHERS = [
        *([] if hasher is MD5PasswordHasher else [f"{__name__}.{hasher.__qualname__}"]),
        "django.contrib.auth.hashers.MD5PasswordHasher",
    ]


def token_of(owner: User) -> str:
    return tokens.issue("ci", by=owner, owner=owner).text


def hash_of(owner: User) -> str:
    return User.objects.get(pk=owner.pk).password


def on_the_page(owner: User) -> bool:
    answer = Client().post("/sign-in/", {"username": owner.username, "password": factories.PASSWORD})
    return answer.status_code == 302


def in_a_program(owner: User) -> bool:
    return authenticate(username=owner.username, password=factories.PASSWORD) == owner


def in_an_async_program(owner: User) -> bool:
    return async_to_sync(User.objects.get(pk=owner.pk).acheck_password)(factories.PASSWORD)


WAYS = pytest.mark.parametrize("sign_in", [on_the_page, in_a_program, in_an_async_program])


@WAYS
def test_a_token_survives_each_new_hash_of_the_same_password(
    settings: Any, sign_in: Callable[[User], bool]
) -> None:
    owner, hashes = factories.person(), set()
    text = token_of(owner)
    for hasher in (MD5PasswordHasher, Slower, SlowerStill):
        prefer(settings, hasher)
        assert sign_in(owner)
        hashes.add(hash_of(owner))
        assert tokens.find(text) is not None
    assert len(hashes) == 3


@WAYS
def test_what_another_password_has_ended_stays_ended(settings: Any, sign_in: Callable[[User], bool]) -> None:
    owner = factories.person()
    text = token_of(owner)
    owner.set_password(OTHER)
    owner.save()
    owner.set_password(factories.PASSWORD)  # and back: a hash of its own
    owner.save()
    assert tokens.find(text) is None
    prefer(settings, Slower)
    assert sign_in(owner)
    assert hash_of(owner).startswith("pbkdf2_sha256$2$")
    assert tokens.find(text) is None


def test_those_of_others_and_of_teams_are_left_alone(settings: Any) -> None:
    owner, other = factories.person("admin"), factories.person()
    token_of(other)
    tokens.issue("deploy", by=owner)
    before = list(Token.objects.order_by("key").values_list("owner_marks", flat=True))
    prefer(settings, Slower)
    assert in_a_program(owner)
    assert list(Token.objects.order_by("key").values_list("owner_marks", flat=True)) == before


def _set(user: User) -> None:
    user.set_password(OTHER)
    user.save()


def _set_and_save_only_that(user: User) -> None:
    user.set_password(OTHER)
    user.save(update_fields=["password"])


def _set_it_without_a_word(user: User) -> None:
    user.set_password(OTHER)
    user._password = None
    user.save()


def _set_the_same(user: User) -> None:
    user.set_password(factories.PASSWORD)
    user.save(update_fields=["password"])


def _write_a_hash(user: User) -> None:
    user.password = make_password(OTHER)
    user.save(update_fields=["password"])


def _write_a_hash_with_all(user: User) -> None:
    user.password = make_password(OTHER)
    user.save()


def _write_it_in_bulk(user: User) -> None:
    user.password = make_password(OTHER)
    User.objects.bulk_update([user], ["password"])


def _update(user: User) -> None:
    User.objects.filter(pk=user.pk).update(password=make_password(OTHER))


def _make_it_unusable(user: User) -> None:
    user.set_unusable_password()
    user.save(update_fields=["password"])


CHANGES = pytest.mark.parametrize(
    "change",
    [
        _set,
        _set_and_save_only_that,
        _set_it_without_a_word,
        _set_the_same,
        _write_a_hash,
        _write_a_hash_with_all,
        _write_it_in_bulk,
        _update,
        _make_it_unusable,
    ],
)


@CHANGES
def test_every_other_new_hash_ends_them(settings: Any, change: Callable[[User], None]) -> None:
    owner = factories.person()
    text = token_of(owner)
    prefer(settings, Slower)
    change(User.objects.get(pk=owner.pk))
    assert hash_of(owner) != owner.password
    assert tokens.find(text) is None


@CHANGES
def test_so_does_one_in_the_request_that_has_hashed_anew(
    settings: Any, change: Callable[[User], None]
) -> None:
    """Django's form asks for the old password first, of the same object."""
    owner = factories.person()
    text = token_of(owner)
    prefer(settings, Slower)
    user = User.objects.get(pk=owner.pk)
    assert user.check_password(factories.PASSWORD)
    assert tokens.find(text) is not None
    change(user)
    assert tokens.find(text) is None


def test_a_wrong_password_writes_nothing(settings: Any) -> None:
    owner = factories.person()
    text = token_of(owner)
    prefer(settings, Slower)
    assert authenticate(username=owner.username, password=OTHER) is None
    assert hash_of(owner) == owner.password
    assert tokens.find(text) is not None


def test_nobody_is_kept_from_signing_in_without_the_table(
    settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    owner = factories.person()
    token_of(owner)
    prefer(settings, Slower)
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE studio_token RENAME TO studio_elsewhere")
    assert on_the_page(owner)
    assert "The personal tokens of a user end" in caplog.text


def test_any_other_change_of_a_user_costs_nothing(
    settings: Any, django_assert_num_queries: Callable[[int], Any]
) -> None:
    owner = User.objects.get(pk=factories.person().pk)
    prefer(settings, Slower)
    for fields in (None, ["first_name", "password"], ["password"]):
        with django_assert_num_queries(1):
            owner.save(update_fields=fields)
    assert owner.check_password(factories.PASSWORD)
    for fields in (None, ["first_name", "password"], ["password"]):
        with django_assert_num_queries(1):
            owner.save(update_fields=fields)


def test_a_token_is_valid_at_every_moment_of_it(settings: Any) -> None:
    owner, seen = factories.person(), list[bool]()
    text = token_of(owner)
    prefer(settings, Slower)

    def look(*_: Any, **__: Any) -> None:
        seen.append(tokens.find(text) is not None)

    post_save.connect(look, sender=User)
    try:
        assert in_a_program(owner)
    finally:
        post_save.disconnect(look, sender=User)
    assert seen == [True]


def test_a_token_survives_two_sign_ins_at_once(settings: Any) -> None:
    """Both have read the old hash, and each saves its own."""
    owner = factories.person()
    text = token_of(owner)
    prefer(settings, Slower)
    first, second = User.objects.get(pk=owner.pk), User.objects.get(pk=owner.pk)
    assert first.check_password(factories.PASSWORD)
    assert second.check_password(factories.PASSWORD)
    assert hash_of(owner) == second.password != first.password
    assert tokens.find(text) is not None
    User.objects.filter(pk=owner.pk).update(password=first.password)  # as if it had been saved last
    assert tokens.find(text) is not None
