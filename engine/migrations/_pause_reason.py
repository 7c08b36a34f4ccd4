"""The reasons of the engine's pauses move from `error` to `pause_reason`, and the error that stood inside back to it.

Until 0010 a pause by the engine wrote its reason over `error`. While rollbacks ran, the error with which the instance
will end was kept inside the reason, as `original`. Processes of such a release go on writing so until they are replaced.
"""

from engine.migrations._notices import NOTE_INSTANCE_BY_REASON, PAUSE_IS_NOTED

_TYPES = "ARRAY['CodeChangedError', 'NonDeterminismError', 'GivenUpError', 'SecretKeyError']"

COLUMNS = (
    """
    ALTER TABLE engine_instance ADD COLUMN IF NOT EXISTS pause_reason json;
    ALTER TABLE engine_generation ADD COLUMN IF NOT EXISTS pause_reason json
    """,
    """
    ALTER TABLE engine_instance DROP COLUMN IF EXISTS pause_reason;
    ALTER TABLE engine_generation DROP COLUMN IF EXISTS pause_reason
    """,
)


def _is_reason(row: str) -> str:
    """Tell a reason of the engine from what an instance has failed with, which may have any type."""
    return f"({row}error -> 'original' IS NOT NULL OR {row}ends_as <> 'errored' AND {row}error ->> 'type' = ANY ({_TYPES}))"


# Not by jsonb, which would change numbers and the order of keys.
def _alone(error: str) -> str:
    return f"""(
        SELECT json_object_agg(part.key, part.value ORDER BY part.place)
        FROM json_each({error}) WITH ORDINALITY AS part (key, value, place) WHERE part.key <> 'original'
    )"""  # noqa: S608 - a column's name


# What a process of an earlier release writes: a reason in `error`, or that the instance goes on, without taking the
# reason away. The happy path pays for the condition only.
_FUNCTION = f"""
    CREATE OR REPLACE FUNCTION engine_keep_pause_reason() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF NEW.status = 'paused' THEN
            NEW.pause_reason := {_alone("NEW.error")};
            NEW.error := NEW.error -> 'original';
        ELSE
            NEW.pause_reason := NULL;
        END IF;
        RETURN NEW;
    END
    $$
"""  # noqa: S608
_TRIGGER = f"""
    CREATE OR REPLACE TRIGGER engine_instance_pause_reason BEFORE UPDATE OF status ON engine_instance FOR EACH ROW
    WHEN (
        NEW.status = 'paused' AND OLD.status <> 'paused' AND NEW.pause_reason IS NULL AND NEW.error IS NOT NULL
            AND NEW.error::text IS DISTINCT FROM OLD.error::text AND {_is_reason("NEW.")}
        OR OLD.pause_reason IS NOT NULL AND NEW.pause_reason IS NOT NULL
            AND NEW.status NOT IN ('paused', 'complete', 'errored', 'terminated')
    )
    EXECUTE FUNCTION engine_keep_pause_reason()
"""
# In one transaction: where the first trigger moves a reason, only the new condition of the notices sees it.
WRITES_OF_EARLIER_RELEASES = (
    ";".join((_FUNCTION, _TRIGGER, NOTE_INSTANCE_BY_REASON[0], PAUSE_IS_NOTED[0])),
    f"""
    {NOTE_INSTANCE_BY_REASON[1]}; {PAUSE_IS_NOTED[1]};
    DROP TRIGGER IF EXISTS engine_instance_pause_reason ON engine_instance;
    DROP FUNCTION IF EXISTS engine_keep_pause_reason()
    """,
)

MOVE_OF_PAUSED = (
    f"""
    UPDATE engine_instance i SET pause_reason = {_alone("i.error")}, error = i.error -> 'original'
    FROM (
        SELECT key FROM engine_instance
        WHERE status = 'paused' AND error IS NOT NULL AND pause_reason IS NULL AND {_is_reason("")}
        ORDER BY key FOR NO KEY UPDATE
    ) paused
    WHERE i.key = paused.key
    """,  # noqa: S608 - constants of ours
    """
    UPDATE engine_instance i SET error = CASE WHEN i.error IS NULL THEN i.pause_reason ELSE (
        SELECT json_object_agg(part.key, part.value ORDER BY part.place) FROM (
            SELECT * FROM json_each(i.pause_reason) WITH ORDINALITY AS of (key, value, place)
            UNION ALL SELECT 'original', i.error, 1000000
        ) part
    ) END
    FROM (
        SELECT key FROM engine_instance WHERE status = 'paused' AND pause_reason IS NOT NULL
        ORDER BY key FOR NO KEY UPDATE
    ) paused
    WHERE i.key = paused.key
    """,
)


# Where it was ended while paused. A trigger refuses every change of what has ended, so it is off for a moment. The rows
# are looked for before that: looking takes longer, and keeps nobody waiting.
def _of_ended(table: str, trigger: str, *, where: str, change: str) -> str:
    return f"""
    DO $$
    DECLARE
        keys constant bigint[] := ARRAY(SELECT key FROM {table} WHERE {where});
    BEGIN
        IF cardinality(keys) = 0 THEN
            RETURN;
        END IF;
        ALTER TABLE {table} DISABLE TRIGGER {trigger};
        UPDATE {table} SET {change} WHERE key = ANY (keys) AND {where};
        ALTER TABLE {table} ENABLE TRIGGER {trigger};
    END
    $$
    """  # noqa: S608 - constants of ours


def _move_of_ended(table: str, trigger: str) -> tuple[str, str]:
    forwards = _of_ended(
        table,
        trigger,
        where=f"""status IN ('paused', 'terminated') AND rollback <> 'failed' AND error IS NOT NULL
            AND pause_reason IS NULL AND error ->> 'type' = ANY ({_TYPES})""",
        change="pause_reason = error, error = NULL",
    )
    backwards = _of_ended(
        table,
        trigger,
        where="status = 'terminated' AND error IS NULL AND pause_reason IS NOT NULL",
        change="error = pause_reason",
    )
    return forwards, backwards


MOVE_OF_TERMINATED = _move_of_ended("engine_instance", "engine_instance_is_final")
MOVE_OF_GENERATIONS = _move_of_ended("engine_generation", "engine_generation_is_final")
