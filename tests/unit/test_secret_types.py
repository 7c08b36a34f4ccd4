"""Secret types are stored encrypted and read back equal, wherever they are in a type."""

from __future__ import annotations

import collections
import dataclasses
import json
from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Annotated, Any, Generic, NamedTuple, TypedDict, TypeVar

import pydantic
import pytest
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    InstanceOf,
    Json,
    PlainSerializer,
    PlainValidator,
    RootModel,
    Secret,
    SecretBytes,
    SecretStr,
    SerializeAsAny,
    WrapValidator,
    field_serializer,
    field_validator,
    model_serializer,
    model_validator,
)

from engine.declare.params import validate
from engine.declare.secrets import SecretKeys, are_equal, decrypted
from engine.values.errors import InvalidParamsError, InvalidValueError, LimitError, SecretKeyError
from engine.values.serialization import Codec
from engine.values.serialization.envelope import KEY, MASK, masked, masked_text

CANARY = "hunter2-hunter2"
X = SecretStr(CANARY)
T = TypeVar("T")


@dataclasses.dataclass
class Plain:
    token: SecretStr
    n: int = 0


@pydantic.dataclasses.dataclass
class Checked:
    token: SecretStr


class Dict(TypedDict):
    token: SecretStr


class Pair(NamedTuple):
    token: SecretStr
    n: int


class Model(BaseModel):
    token: SecretStr
    n: int = 3


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True)
    token: SecretStr


class Outer(BaseModel):
    inner: Model
    all: list[Model] = []


class Box(BaseModel, Generic[T]):
    held: T


ODD_NAMES = ["type", "default", "config", "metadata", "cls", "ref", "serialization", "schema"]


class OddNames(BaseModel):
    """Fields named like parts of pydantic's schemas."""

    type: SecretStr
    default: SecretStr
    config: SecretStr
    metadata: SecretStr
    cls: SecretStr
    ref: SecretStr
    serialization: SecretStr
    schema_: SecretStr = Field(alias="schema")


class Tree(BaseModel):
    token: SecretStr
    trees: list[Tree] = []
    hidden: Secret[Tree] | None = None


class Dumping(BaseModel):
    """What people write to get their secrets into JSON."""

    token: SecretStr
    pin: Secret[int]
    maybe: SecretStr | None = None

    @field_serializer("token", "pin", "maybe", when_used="json")
    def dump(self, value: Any) -> Any:
        return value.get_secret_value() if value else None


class DumpingAll(BaseModel):
    token: SecretStr

    @model_serializer
    def dump(self) -> dict[str, str]:
        return {"token": self.token.get_secret_value()}


class Excluding(BaseModel):
    token: SecretStr = Field(exclude=True)


class Token(SecretStr):
    """A secret type that a user defines."""


class Birthday(Secret[date]):
    """Another one."""


CASES: list[tuple[Any, Any]] = [
    (SecretStr, X),
    (SecretStr, SecretStr("")),
    (SecretStr, SecretStr('ünïcödé 🔑 " \\ \n')),
    (SecretBytes, SecretBytes(b"\xff\x00" + CANARY.encode())),
    (Secret[str], Secret(CANARY)),
    (Secret[int], Secret(2**62)),
    (Secret[bytes], Secret(b"\xff\x00")),
    (Secret[Decimal], Secret(Decimal("1.10"))),
    (Secret[dict[str, Any]], Secret({"a": [1, None, CANARY]})),
    (Secret[Model], Secret(Model(token=X))),
    (Secret[Secret[str]], Secret(Secret(CANARY))),
    (Token, Token(CANARY)),
    (Birthday, Birthday(date(2020, 1, 1))),
    (Plain, Plain(X)),
    (Checked, Checked(X)),
    (Dict, {"token": X}),
    (Pair, Pair(X, 1)),
    (Model, Model(token=X)),
    (Frozen, Frozen(token=X)),
    (Outer, Outer(inner=Model(token=X), all=[Model(token=X)])),
    (Box[SecretStr], Box[SecretStr](held=X)),
    (Box[list[Model]], Box[list[Model]](held=[Model(token=X)])),
    (RootModel[SecretStr], RootModel[SecretStr](X)),
    (Tree, Tree(token=X, trees=[Tree(token=X)], hidden=Secret(Tree(token=X, trees=[Tree(token=X)])))),
    (
        OddNames,
        OddNames(
            **dict.fromkeys(
                ["type", "default", "config", "metadata", "cls", "ref", "serialization", "schema"], CANARY
            )
        ),
    ),  # type: ignore[arg-type]
    (Dumping, Dumping(token=X, pin=Secret(1234), maybe=X)),
    (DumpingAll, DumpingAll(token=X)),
    (Excluding, Excluding(token=X)),
    (SerializeAsAny[Model], Model(token=X)),
    (Annotated[SecretStr, PlainSerializer(lambda value: value.get_secret_value())], X),
    (Annotated[SecretStr, Field(min_length=3, max_length=99)], X),
    (list[SecretStr], [X, X]),
    (Sequence[SecretStr], [X]),
    (tuple[SecretStr, int], (X, 1)),
    (set[SecretStr], {X}),
    (frozenset[SecretStr], frozenset({X})),
    (collections.deque[SecretStr], collections.deque([X])),
    (dict[str, SecretStr], {"k": X}),
    (Mapping[int, SecretStr], {4: X}),
    (SecretStr | None, X),
    (SecretStr | None, None),
    (SecretStr | int, X),
    (SecretStr | int, 5),
    (int | SecretStr, SecretStr("5")),
    (Model | SecretStr, X),
    (Model | SecretStr, Model(token=X)),
    (Secret[int] | Secret[str], Secret(CANARY)),
    (Secret[int] | str, "in clear, as declared"),
]


@pytest.mark.parametrize(("annotation", "value"), CASES, ids=lambda one: str(one)[:60])
def test_a_secret_comes_back_equal_and_is_stored_encrypted(annotation: Any, value: Any) -> None:
    codec = Codec(annotation)
    assert codec.problem == ""
    stored = codec.store(value)
    assert stored.value == value
    assert codec.decode(stored.text) == value
    assert type(codec.decode(stored.text)) is type(value)
    assert CANARY not in stored.text
    assert "*****" not in stored.text


@pytest.mark.parametrize(("annotation", "value"), CASES, ids=lambda one: str(one)[:60])
def test_a_second_encryption_is_another_text_of_an_equal_document(annotation: Any, value: Any) -> None:
    one, other = (json.loads(Codec(annotation).encode(value)) for _ in range(2))
    assert are_equal(one, other)
    if KEY in json.dumps(one):
        assert one != other


def test_a_document_with_another_secret_is_another_document() -> None:
    one, other = (json.loads(Codec(SecretStr).encode(SecretStr(text))) for text in ("a", "b"))
    assert not are_equal(one, other)
    assert not are_equal(one, None)


def test_what_was_never_validated_is_encrypted_too() -> None:
    """By `model_construct`, or an assignment: then the field holds a plain text."""
    changed = Model(token=X)
    changed.token = CANARY  # type: ignore[assignment]
    for value in (changed, Model.model_construct(token=CANARY, n=1)):
        stored = Codec(Model).store(value)
        assert CANARY not in stored.text
        assert stored.value.token == X  # type: ignore[attr-defined]


def test_what_cannot_be_in_the_place_of_a_secret_is_refused_and_not_shown() -> None:
    wrong: Any = {"pin": CANARY}
    with pytest.raises(InvalidValueError) as caught:
        Codec(Model).store(Model.model_construct(token=wrong))
    assert str(caught.value).endswith("The value is not of the type that the secret declares.")
    assert CANARY not in str(caught.value) + str(caught.value.__cause__)


@pytest.mark.parametrize(
    ("annotation", "words"),
    [
        (dict[SecretStr, int], "a secret cannot be the key of a dict"),
        (collections.Counter[SecretStr], "a secret cannot be the key of a dict"),
        (Json[SecretStr], "Json"),
        (InstanceOf[SecretStr], "InstanceOf"),
    ],
)
def test_a_type_whose_secret_could_not_be_kept_is_refused(annotation: Any, words: str) -> None:
    assert words in Codec(annotation).problem


def test_without_an_annotation_a_secret_is_refused_with_the_advice_to_annotate() -> None:
    for value in (X, {"token": X}, [SecretBytes(b"x")]):
        with pytest.raises(InvalidValueError, match="Annotate"):
            Codec(Any).store(value)


# What comes from outside


@pytest.fixture
def smuggled() -> dict[str, str]:
    """An envelope that would open, as a reader of the database could copy it."""
    found: dict[str, str] = json.loads(Codec(SecretStr).encode(X))
    return found


@pytest.mark.parametrize(
    ("annotation", "around"),
    [
        (SecretStr, lambda one: one),
        (Model, lambda one: {"token": one}),
        (Secret[Any], lambda one: one),
        (Secret[dict[str, str]], lambda one: one),
        (Any, lambda one: one),
        (Any, lambda one: {"a": [{"b": one}]}),
        (dict[str, str], lambda one: one),
        (dict[str, Any], lambda one: {"a": one}),
        (list[dict[str, str]], lambda one: [one]),
        (SecretStr | dict[str, str], lambda one: one),
        (Box[Any], lambda one: {"held": one}),
        (Any, lambda one: {**one, "more": 1}),
        (Any, lambda one: {KEY: 5}),
    ],
)
def test_an_envelope_from_outside_is_refused_and_never_opened(
    annotation: Any, around: Any, smuggled: dict[str, str]
) -> None:
    codec, given = Codec(annotation), around(smuggled)
    with pytest.raises((InvalidParamsError, InvalidValueError)) as caught:
        codec.store(validate(codec, given))
    assert CANARY not in str(caught.value)
    with pytest.raises((InvalidParamsError, InvalidValueError)):
        codec.store(given)


def test_a_text_that_only_looks_like_an_envelope_is_plain_data() -> None:
    for value in (KEY, f'{{"{KEY}":"v1.x"}}', f'"{KEY}":', {"a": f'x"{KEY}":'}, {f'"{KEY}': 1}):
        assert Codec(Any).store(value).value == value


@pytest.mark.parametrize("mask", ["*" * 10, MASK, "•••", "●●●●●●●●"])
@pytest.mark.parametrize(
    ("annotation", "around"),
    [
        (SecretStr, lambda mask: mask),
        (SecretStr, SecretStr),
        (SecretBytes, lambda mask: SecretBytes(mask.encode())),
        (Secret[str], Secret),
        (Secret[int], lambda mask: mask),
        (Model, lambda mask: {"token": mask}),
        (Model, lambda mask: Model(token=SecretStr(mask))),
        (SecretStr | None, lambda mask: mask),
    ],
)
def test_the_mask_of_a_secret_is_refused_as_its_value(annotation: Any, around: Any, mask: str) -> None:
    codec = Codec(annotation)
    with pytest.raises((InvalidParamsError, InvalidValueError)) as caught:
        codec.store(validate(codec, around(mask)))
    assert "mask of a secret" in str(caught.value)


def test_what_pydantic_says_of_wrong_input_does_not_show_it() -> None:
    class Strict(BaseModel):
        token: SecretStr
        pin: Secret[int]
        amount: int

    codec = Codec(Strict)
    wrong = [
        {"token": CANARY, "amount": 1},
        {"token": 4711, "pin": CANARY, "amount": CANARY},
        {"token": {"secret": CANARY}, "pin": [CANARY]},
        CANARY,
    ]
    for given in wrong:
        for act in (lambda given=given: validate(codec, given), lambda given=given: codec.store(given)):
            with pytest.raises((InvalidParamsError, InvalidValueError)) as caught:
                act()
            shown = str(caught.value) + repr(caught.value) + str(caught.value.__cause__)
            assert CANARY not in shown
            assert "4711" not in shown


def test_params_in_json_follow_the_rules_for_json() -> None:
    """Bytes are base64 in JSON, inside a secret as elsewhere."""
    assert validate(Codec(SecretBytes), "aGk=") == SecretBytes(b"hi")
    assert validate(Codec(SecretBytes), SecretBytes(b"hi")) == SecretBytes(b"hi")
    assert validate(Codec(Secret[date]), "2020-01-01") == Secret(date(2020, 1, 1))


def test_the_limit_counts_what_is_stored() -> None:
    for size in (800_000, 2_000_000):
        with pytest.raises(LimitError, match="limit is 1,048,576 bytes"):
            Codec(SecretStr).store(SecretStr("x" * size))
    assert Codec(SecretStr).store(SecretStr("x" * 700_000)).value == SecretStr("x" * 700_000)


# What is stored already


def test_what_was_stored_before_its_type_became_secret_stays_what_it_is() -> None:
    assert Codec(Model).decode('{"token":"plain","n":1}') == Model(token=SecretStr("plain"), n=1)
    assert Codec(Model).decode('{"token":"**********","n":1}') == Model(token=SecretStr("*" * 10), n=1)
    assert Codec(SecretBytes).decode('"aGk="') == SecretBytes(b"hi")
    assert Codec(Secret[int]).decode("4") == Secret(4)


def test_without_a_type_a_stored_secret_is_read_as_one() -> None:
    text = Codec(Outer).encode(Outer(inner=Model(token=X)))
    assert Codec(Any).decode(text) == {"inner": {"token": X, "n": 3}, "all": []}
    assert Codec(Box[Any]).decode(f'{{"held":{text}}}').held["inner"]["token"] == X  # type: ignore[attr-defined]
    assert Codec(Any).decode(Codec(Secret[int]).encode(Secret(4))) == Secret(4)


def test_a_type_that_takes_no_secret_refuses_a_stored_one() -> None:
    text = Codec(Model).encode(Model(token=X))

    class Now(BaseModel):
        token: str

    with pytest.raises(InvalidValueError, match=r"\$\.token"):
        Codec(Now).decode(text)


def test_a_validator_of_the_users_sees_the_secret_also_on_a_replay() -> None:
    class Cautious(BaseModel):
        token: SecretStr

        @field_validator("token")
        @classmethod
        def is_long(cls, value: SecretStr) -> SecretStr:
            if len(value) < 4:
                raise ValueError("too short")
            return value

    codec = Codec(Cautious)
    assert codec.decode(codec.encode(Cautious(token=X))) == Cautious(token=X)
    with pytest.raises(InvalidParamsError, match="token: Value error, too short"):
        validate(codec, {"token": "abc"})


class Stripping(BaseModel):
    """Validators that see what is given before it is a secret."""

    token: SecretStr
    pin: Annotated[Secret[int], BeforeValidator(lambda value: value or 0)] = Secret(0)
    word: Annotated[SecretStr, WrapValidator(lambda value, handler: handler(value))] = SecretStr("x")
    odd: Annotated[
        SecretStr, PlainValidator(lambda value: value if isinstance(value, SecretStr) else SecretStr(value))
    ] = SecretStr("y")

    @field_validator("token", mode="before")
    @classmethod
    def strip(cls, value: Any) -> Any:
        return value.get_secret_value() if isinstance(value, SecretStr) else value.strip()

    @model_validator(mode="before")
    @classmethod
    def look(cls, data: Any) -> Any:
        if isinstance(data, dict):
            assert "$" not in str(data["token"])
        return data


def test_a_validator_that_comes_before_its_own_sees_a_stored_secret_as_it_was_given() -> None:
    codec = Codec(Stripping)
    assert codec.problem == ""
    value = validate(codec, {"token": f" {CANARY} ", "pin": 5, "word": CANARY, "odd": CANARY})
    stored = codec.store(value)
    assert CANARY not in stored.text
    assert stored.value == codec.decode(stored.text) == value
    assert (value.token, value.pin, value.odd) == (X, Secret(5), X)  # type: ignore[attr-defined]
    assert Codec(list[Stripping]).store([value]).value == [value]


def test_another_key_does_not_open_it(settings: Any) -> None:
    text = Codec(Model).encode(Model(token=X))
    settings.SECRET_KEY = "another key, and quite a long one at that, or it is refused"
    with pytest.raises(SecretKeyError) as caught:
        Codec(Model).decode(text)
    assert caught.value.needed in text
    assert caught.value.needed not in caught.value.known
    assert 'REPRISE["SECRET_KEYS"]' in str(caught.value)
    with pytest.raises(SecretKeyError):
        Codec(SecretStr | dict[str, Any]).decode(json.dumps(json.loads(text)["token"]))


def test_a_damaged_text_is_told_from_a_missing_key() -> None:
    text = Codec(SecretStr).encode(X)
    with pytest.raises(SecretKeyError, match="damaged"):
        Codec(SecretStr).decode(text[:-8] + "AAAA" + text[-4:])


class TestRotation:
    old, new = "o" * 31 + "ld", "n" * 31 + "ew"

    def test_a_new_key_encrypts_and_the_old_one_still_decrypts(self, settings: Any) -> None:
        settings.REPRISE = settings.REPRISE | {"SECRET_KEYS": [self.old]}
        before = Codec(SecretStr).encode(X)
        settings.REPRISE = settings.REPRISE | {"SECRET_KEYS": [self.new, self.old]}
        after = Codec(SecretStr).encode(X)
        settings.REPRISE = settings.REPRISE | {"SECRET_KEYS": [self.new]}
        assert Codec(SecretStr).decode(after) == X
        with pytest.raises(SecretKeyError):
            Codec(SecretStr).decode(before)

    def test_the_first_own_keys_lose_nothing_that_secret_key_encrypted(self, settings: Any) -> None:
        before = Codec(SecretStr).encode(X)
        settings.REPRISE = settings.REPRISE | {"SECRET_KEYS": [self.new]}
        assert Codec(SecretStr).decode(before) == X

    def test_a_secret_key_that_was_replaced_decrypts_as_a_fallback(self, settings: Any) -> None:
        before = Codec(SecretStr).encode(X)
        settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
        settings.SECRET_KEY = self.new
        assert Codec(SecretStr).decode(before) == X
        after = Codec(SecretStr).encode(X)
        settings.SECRET_KEY_FALLBACKS = []
        assert Codec(SecretStr).decode(after) == X


# How it is shown


def test_a_stored_document_is_shown_with_masks() -> None:
    stored = json.loads(Codec(Outer).encode(Outer(inner=Model(token=X), all=[Model(token=X)])))
    shown = {"inner": {"token": MASK, "n": 3}, "all": [{"token": MASK, "n": 3}]}
    assert masked(stored) == shown
    for separators in ((",", ":"), (", ", ": ")):
        assert json.loads(masked_text(json.dumps(stored, separators=separators))) == shown
    assert masked_text(json.dumps(stored, indent=2)).count(MASK) == 2


def test_the_beginning_of_a_stored_text_shows_no_half_of_a_secret() -> None:
    text = Codec(Model).encode(Model(token=X))
    token = json.loads(text)["token"][KEY]
    for end in range(len(text)):
        assert token[:12] not in masked_text(text[:end])


def test_a_text_that_holds_what_looks_like_an_envelope_is_shown_as_it_is() -> None:
    text = json.dumps({"a": f'{{"{KEY}":"v1.x"}}'})
    assert masked_text(text) == text


def test_the_json_schema_marks_secrets_and_shows_no_default() -> None:
    class Params(BaseModel):
        token: SecretStr
        pin: Secret[int] = Secret(4711)
        key: SecretBytes = SecretBytes(CANARY.encode())
        word: Secret[str] = Secret(CANARY)
        many: list[SecretStr] = []
        maybe: SecretStr | None = None
        inner: Model = Model(token=X)
        whole: Secret[Model] | None = None
        city: str = "Berlin"

    schema = Codec(Params).schema()
    assert schema is not None
    assert CANARY not in json.dumps(schema)
    assert "*****" not in json.dumps(schema)
    fields = schema["properties"]
    marks = {"writeOnly": True, "x-secret": True}
    assert fields["token"] == {"title": "Token", "type": "string", "format": "password", **marks}
    assert fields["pin"] == {"title": "Pin", "type": "integer", **marks}
    assert fields["key"] == {"title": "Key", "type": "string", "format": "password", **marks}
    assert fields["word"] == {"title": "Word", "type": "string", "format": "password", **marks}
    assert fields["many"]["items"] == {"type": "string", "format": "password", **marks}
    assert fields["many"]["default"] == []
    assert fields["whole"]["anyOf"][0] == {"$ref": "#/$defs/Model", **marks}
    assert "default" not in fields["inner"]
    assert fields["city"]["default"] == "Berlin"
    assert schema["required"] == ["token"]


def test_a_token_names_its_key_and_no_key_can_be_read_from_it() -> None:
    keys = SecretKeys(
        {"abcd": __import__("cryptography.fernet", fromlist=["Fernet"]).Fernet(b"A" * 43 + b"=")}
    )
    token = keys.encrypt('"x"')
    assert token.startswith("v1.abcd.")
    assert keys.decrypt(token) == '"x"'


def test_a_document_in_clear_is_what_a_test_compares() -> None:
    stored = json.loads(Codec(Outer).encode(Outer(inner=Model(token=X))))
    assert decrypted(stored) == {"inner": {"token": CANARY, "n": 3}, "all": []}
