"""Guessing passwords is counted before a password is looked at."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models import F
from django.test import Client
from django.utils import timezone

from engine.models import Audit
from studio.access import throttle
from studio.access.addresses import sender
from studio.accounts import password_limits
from studio.accounts.password_limits import FROM_AN_ADDRESS, OF_A_NAME, OF_A_NAME_FROM_AN_ADDRESS, ROWS
from studio.models import Throttle
from tests.studio import factories

HERE, ELSEWHERE = "203.0.113.7", "198.51.100.9"


def sign_in(
    client: Client, name: str = "zoe", password: str = "wrong", address: str = HERE, **headers: str
) -> Any:
    given = {"username": name, "password": password}
    return client.post("/sign-in/", given, REMOTE_ADDR=address, headers=headers)


def statuses(client: Client, times: int, **given: Any) -> list[int]:
    return [sign_in(client, **given).status_code for _ in range(times)]


def used_up(client: Client, name: str = "zoe", address: str = HERE) -> None:
    assert set(statuses(client, OF_A_NAME_FROM_AN_ADDRESS, name=name, address=address)) == {200}


@pytest.mark.django_db
class TestLimits:
    @pytest.fixture(autouse=True)
    def zoe(self) -> None:
        factories.person("viewer", "zoe")

    def test_a_name_from_an_address_may_fail_ten_times(self, client: Client) -> None:
        used_up(client)
        refused = sign_in(client)
        assert refused.status_code == 429
        assert 500 < int(refused.headers["Retry-After"]) <= 600
        assert "Wait 10 minutes, then try again." in refused.content.decode()

    def test_the_right_password_is_refused_as_well_until_the_time_is_over(self, client: Client) -> None:
        used_up(client)
        assert sign_in(client, password=factories.PASSWORD).status_code == 429
        Throttle.objects.update(ends_at=timezone.now() - timedelta(seconds=1))
        assert sign_in(client, password=factories.PASSWORD).status_code == 302

    def test_the_owner_gets_in_from_another_address(self, client: Client) -> None:
        used_up(client)
        assert sign_in(client, password=factories.PASSWORD, address=ELSEWHERE).status_code == 302

    def test_another_name_gets_in_from_the_same_address(self, client: Client) -> None:
        used_up(client)
        factories.person("viewer", "yan")
        assert sign_in(client, name="yan", password=factories.PASSWORD).status_code == 302

    def test_names_are_counted_in_any_case(self, client: Client) -> None:
        used_up(client)
        assert sign_in(client, name="ZOE ").status_code == 429

    def test_the_right_password_begins_the_count_anew(self, client: Client) -> None:
        statuses(client, OF_A_NAME_FROM_AN_ADDRESS - 1)
        assert sign_in(Client(), password=factories.PASSWORD).status_code == 302
        used_up(client)

    def test_right_passwords_are_not_counted(self) -> None:
        times = FROM_AN_ADDRESS + 1
        found = [sign_in(Client(), password=factories.PASSWORD).status_code for _ in range(times)]
        assert set(found) == {302}

    def test_an_address_may_fail_fifty_times_whatever_the_names(self, client: Client) -> None:
        found = [sign_in(client, name=f"name-{n}").status_code for n in range(FROM_AN_ADDRESS + 1)]
        assert found == [200] * FROM_AN_ADDRESS + [429]
        assert sign_in(client, password=factories.PASSWORD).status_code == 429

    def test_a_name_may_fail_so_often_from_everywhere(
        self, client: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(password_limits, "OF_A_NAME", 6)
        found = [sign_in(client, address=f"192.0.2.{n}").status_code for n in range(7)]
        assert found == [200] * 6 + [429]

    def test_the_owner_is_not_locked_out_of_where_they_work(
        self, client: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(password_limits, "OF_A_NAME", 6)
        assert sign_in(Client(), password=factories.PASSWORD).status_code == 302
        for n in range(7):
            sign_in(client, address=f"192.0.2.{n}")
        assert sign_in(client, password=factories.PASSWORD, address=ELSEWHERE).status_code == 429
        assert sign_in(client, password=factories.PASSWORD, address=HERE).status_code == 302

    def test_an_address_is_known_from_the_latest_sign_in(
        self, client: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(password_limits, "OF_A_NAME", 2)
        for _ in range(2):
            assert sign_in(Client(), password=factories.PASSWORD).status_code == 302
            Throttle.objects.update(ends_at=F("ends_at") - timedelta(days=20))
        statuses(client, 4, address=ELSEWHERE)
        assert sign_in(client, password=factories.PASSWORD, address="192.0.2.1").status_code == 429
        assert sign_in(client, password=factories.PASSWORD).status_code == 302

    def test_no_password_is_looked_at_once_it_is_too_many(
        self, client: Client, monkeypatch: pytest.MonkeyPatch, settings: Any
    ) -> None:
        used_up(client)
        settings.AUTHENTICATION_BACKENDS = ["tests.studio.accounts.test_sign_in_limits.NotAsked"]
        assert sign_in(client).status_code == 429

    def test_forged_headers_make_no_other_address(self, client: Client) -> None:
        for n in range(OF_A_NAME_FROM_AN_ADDRESS):
            sign_in(client, **{"X-Forwarded-For": f"10.0.0.{n}"})
        assert sign_in(client, **{"X-Forwarded-For": "10.0.1.1"}).status_code == 429

    def test_a_trusted_proxy_is_believed(self, client: Client, settings: Any) -> None:
        settings.REPRISE = settings.REPRISE | {"TRUSTED_PROXIES": [HERE]}
        for n in range(OF_A_NAME_FROM_AN_ADDRESS + 1):
            assert sign_in(client, **{"X-Forwarded-For": f"10.0.0.{n}"}).status_code == 200

    def test_a_form_without_a_password_is_no_try(self, client: Client) -> None:
        statuses(client, OF_A_NAME_FROM_AN_ADDRESS + 1, password="")
        assert not Throttle.objects.exists()

    def test_names_are_not_kept(self, client: Client) -> None:
        sign_in(client, name="my-real-password")
        with connection.cursor() as cursor:
            cursor.execute("SELECT string_agg(held::text, ' ') FROM studio_throttle held")
            assert "my-real-password" not in cursor.fetchone()[0]

    def test_what_is_over_is_swept(self, client: Client) -> None:
        sign_in(client, name="somebody")
        Throttle.objects.update(ends_at=timezone.now() - timedelta(seconds=1))
        sign_in(client, name="somebody-else", address=ELSEWHERE)
        assert Throttle.objects.count() == 3


class NotAsked:
    def authenticate(self, request: Any, **_: Any) -> None:
        raise AssertionError("A password was looked at.")


@pytest.mark.django_db
class TestTrail:
    def test_has_one_row_for_a_limit_that_is_passed(self, client: Client) -> None:
        factories.person("viewer", "zoe")
        statuses(client, OF_A_NAME_FROM_AN_ADDRESS + 5)
        (entry,) = Audit.objects.all()
        assert (entry.verb, entry.actor, entry.outcome, entry.workflow) == ("sign_in", "zoe", "denied", "")
        assert entry.reason == f"More than 10 failed attempts within 10 min for this name from {HERE}."
        assert entry.data == {"address": HERE}

    def test_does_not_keep_what_is_no_account(self, client: Client) -> None:
        statuses(client, OF_A_NAME_FROM_AN_ADDRESS + 1, name="my-real-password")
        (entry,) = Audit.objects.all()
        assert entry.actor == "anonymous"
        assert "my-real-password" not in str(vars(entry))

    def test_has_no_more_than_so_many_rows(self, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(password_limits, "FROM_AN_ADDRESS", 1)
        monkeypatch.setattr(password_limits, "ROWS", throttle.Limit("rows", 3, timedelta(hours=1)))
        for n in range(6):
            statuses(client, 3, name=f"name-{n}", address=f"192.0.2.{n}")
        assert Audit.objects.count() == 3
        assert ROWS.most <= 100

    def test_is_shown_on_the_page(self, client: Client, viewer: Client) -> None:
        statuses(client, OF_A_NAME_FROM_AN_ADDRESS + 1, name="vic")
        page = viewer.get("/audit/").content.decode()
        assert "denied: sign in" in page
        assert f"for this name from {HERE}." in page


@pytest.mark.django_db(transaction=True)
def test_many_at_once_get_no_more_tries_than_one_after_the_other() -> None:
    """In parallel: the count is taken before the password is looked at."""
    factories.person("viewer", "zoe")
    together, found = threading.Barrier(24), []

    def guess() -> None:
        together.wait(60)
        try:
            found.append(sign_in(Client()).status_code)
        finally:
            connection.close()

    threads = [threading.Thread(target=guess) for _ in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(found) <= {200, 429}
    assert 1 <= found.count(200) <= OF_A_NAME_FROM_AN_ADDRESS


@pytest.mark.django_db  # a thread that waits gives back its connection
class TestSlots:
    @pytest.fixture
    def taken(self) -> Iterator[threading.Event]:
        """All places are taken until the event is set."""
        free, holding = threading.Event(), threading.Barrier(password_limits.SLOTS + 1)

        def hold() -> None:
            with password_limits.slot("10.9.9.9"):
                holding.wait(60)
                free.wait(60)

        threads = [threading.Thread(target=hold) for _ in range(password_limits.SLOTS)]
        for thread in threads:
            thread.start()
        holding.wait(60)
        yield free
        free.set()
        for thread in threads:
            thread.join()

    def test_who_finds_none_waits_for_one(self, taken: threading.Event) -> None:
        threading.Timer(0.1, taken.set).start()
        with password_limits.slot("10.0.0.1"):
            assert taken.is_set()

    def test_nobody_waits_for_ever(self, taken: threading.Event, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(password_limits, "LONGEST_WAIT_S", 0.05)
        with pytest.raises(password_limits.BusyError), password_limits.slot("10.0.0.1"):
            pass

    def test_few_of_an_address_wait_and_few_altogether(
        self, taken: threading.Event, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(password_limits, "LONGEST_WAIT_S", 20.0)
        come: list[str] = []

        def wait(address: str) -> None:
            with password_limits.slot(address):
                come.append(address)

        addresses = [f"10.0.0.{n % 2}" for n in range(password_limits.MOST_WAITING)]
        assert password_limits.MOST_OF_AN_ADDRESS * 2 == password_limits.MOST_WAITING
        threads = [threading.Thread(target=wait, args=[one]) for one in addresses]
        for n, thread in enumerate(threads, start=1):
            thread.start()
            while password_limits._waiting.total() < n:
                pass
            if n == password_limits.MOST_WAITING - 1:
                with pytest.raises(password_limits.BusyError), password_limits.slot("10.0.0.0"):
                    pass
        with pytest.raises(password_limits.BusyError), password_limits.slot("10.0.0.9"):
            pass
        taken.set()
        for thread in threads:
            thread.join()
        assert sorted(come) == sorted(addresses)

    @pytest.mark.django_db
    def test_a_busy_moment_is_said_and_counts_as_no_try(
        self, taken: threading.Event, client: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(password_limits, "LONGEST_WAIT_S", 0.01)
        answer = sign_in(client)
        assert (answer.status_code, answer.headers["Retry-After"]) == (429, "5")
        page = answer.content.decode()
        assert "<h1>The server is busy</h1>" in page
        assert "Nothing was changed. Wait 5 seconds, then try again." in page
        assert "attempts" not in page
        assert set(Throttle.objects.values_list("n", flat=True)) == {0}


@pytest.mark.parametrize(
    ("peer", "forwarded", "trusted", "expected"),
    [
        ("203.0.113.7", "", (), "203.0.113.7"),
        ("203.0.113.7", "10.0.0.1", (), "203.0.113.7"),
        ("127.0.0.1", "198.51.100.1", ("127.0.0.1",), "198.51.100.1"),
        ("127.0.0.1", "1.2.3.4, 198.51.100.1", ("127.0.0.1",), "198.51.100.1"),
        ("127.0.0.1", "198.51.100.1, 10.1.2.3", ("127.0.0.1", "10.0.0.0/8"), "198.51.100.1"),
        ("127.0.0.1", "10.1.2.3, 10.1.2.4", ("127.0.0.1", "10.0.0.0/8"), "10.1.2.3"),
        ("127.0.0.1", "nonsense", ("127.0.0.1",), "127.0.0.1"),
        ("127.0.0.1", "198.51.100.1, nonsense", ("127.0.0.1",), "127.0.0.1"),
        ("127.0.0.1", "198.51.100.1:5678", ("127.0.0.1",), "198.51.100.1"),
        ("127.0.0.1", "[2001:db8:1:2::9]:5678", ("127.0.0.1",), "2001:db8:1:2::/64"),
        ("", "198.51.100.1", ("127.0.0.1",), "198.51.100.1"),
        ("", "198.51.100.1, 127.0.0.1", ("127.0.0.1",), "198.51.100.1"),
        ("", "198.51.100.1", (), "unknown"),
        ("", "", ("127.0.0.1",), "unknown"),
        ("", "nonsense", ("127.0.0.1",), "unknown"),
        ("2001:db8:1:2:3:4:5:6", "", (), "2001:db8:1:2::/64"),
        ("::ffff:203.0.113.7", "", (), "203.0.113.7"),
        ("fe80::1%eth0", "", (), "fe80::/64"),
    ],
)
def test_the_address_is_the_first_that_no_trusted_proxy_has(
    peer: str, forwarded: str, trusted: tuple[str, ...], expected: str
) -> None:
    assert sender(peer, forwarded, trusted) == expected


def test_the_limit_of_a_name_is_higher_than_that_of_an_address() -> None:
    assert OF_A_NAME_FROM_AN_ADDRESS < FROM_AN_ADDRESS < OF_A_NAME
