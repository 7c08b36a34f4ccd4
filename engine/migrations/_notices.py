"""The triggers that note what has gone wrong. No code path can forget one, whoever ends an instance or pauses it.

The conditions are all that the happy path pays for. AFTER, so that the functions see what the same statement wrote of
steps and attempts.
"""

# Of a message no more than this: the whole of it stands with the instance.
MESSAGE_LENGTH = 4000

# What a sensitive step says of its failure may hold what it is to hide, wherever the handler repeats it.
_HIDDEN = """(
            SELECT format('(not shown: step "%s" is sensitive)', s.name) FROM engine_step s
            WHERE s.instance_id = NEW.key AND s.generation = NEW.generation AND s.sensitive
              AND (s.status = 'errored' OR s.rollback IN ('running', 'failed')
                   OR NEW.status = 'paused' AND NEW.error ->> 'type' <> 'CodeChangedError')
            ORDER BY s.seq LIMIT 1
        )"""

# An instance whose failed rollback is retried ends a second time, with the same outcome. That is not told again.
NOTE_INSTANCE = (
    f"""
    CREATE FUNCTION engine_note_instance() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE
        hidden constant text := {_HIDDEN};
    BEGIN
        IF NEW.status = 'errored' AND OLD.status <> 'errored' AND NOT (
            OLD.rollback = 'running' AND coalesce((
                SELECT a.verb = 'retry_rollback' FROM engine_audit a
                WHERE a.instance_key = NEW.key AND a.verb IN ('retry_rollback', 'restart') AND a.outcome = 'done'
                ORDER BY a.key DESC LIMIT 1
            ), false)
        ) THEN
            INSERT INTO engine_notice (kind, at, workflow, instance_id, instance_key, generation, step, error_type,
                error_message)
            VALUES ('instance_errored', NEW.finished_at, NEW.workflow, NEW.id, NEW.key, NEW.generation,
                coalesce(NEW.error ->> 'step', ''), coalesce(NEW.error ->> 'type', ''),
                coalesce(hidden, left(NEW.error ->> 'message', {MESSAGE_LENGTH}), ''));
        END IF;
        IF NEW.rollback = 'failed' AND OLD.rollback <> 'failed' THEN
            INSERT INTO engine_notice (kind, at, workflow, instance_id, instance_key, generation, step, count,
                error_type, error_message)
            SELECT 'rollback_failed', coalesce(NEW.finished_at, clock_timestamp()), NEW.workflow, NEW.id, NEW.key,
                NEW.generation, coalesce(s.name, ''), coalesce(s.count, 1), coalesce(a.error ->> 'type', ''),
                coalesce(hidden, left(a.error ->> 'message', {MESSAGE_LENGTH}), '')
            FROM (VALUES (1)) AS always
            LEFT JOIN engine_step s ON s.instance_id = NEW.key AND s.generation = NEW.generation
                AND s.rollback IN ('running', 'failed')
            LEFT JOIN engine_attempt a ON a.instance_id = s.instance_id AND a.generation = s.generation
                AND a.step_seq = s.seq AND a.phase = 'rollback'
            ORDER BY s.rollback = 'failed' DESC, s.seq DESC, a.number DESC LIMIT 1;
        END IF;
        IF NEW.status = 'paused' AND OLD.status <> 'paused' THEN
            INSERT INTO engine_notice (kind, at, workflow, instance_id, instance_key, generation, error_type,
                error_message)
            VALUES ('instance_paused', NEW.paused_at, NEW.workflow, NEW.id, NEW.key, NEW.generation,
                coalesce(NEW.error ->> 'type', ''), coalesce(hidden, left(NEW.error ->> 'message', {MESSAGE_LENGTH}), ''));
        END IF;
        PERFORM pg_notify('engine_wake', 'notice');
        RETURN NULL;
    END
    $$
    """,  # noqa: S608 - a constant of ours
    "DROP FUNCTION engine_note_instance()",
)

# Since 0009. An instance that waited for another one got the error of that one, which may have got it from a third. What
# that one's present generation shows may have come after the error, so that all of its generations count.
_HIDDEN_OF_OTHERS = """(
            WITH RECURSIVE heard_of AS (
                SELECT NEW.key AS key
                UNION
                SELECT i.key FROM heard_of h
                JOIN engine_step s ON s.instance_id = h.key AND (h.key <> NEW.key OR s.generation = NEW.generation)
                JOIN engine_instance i ON i.workflow = s.options ->> 'workflow' AND i.id = s.options ->> 'id'
                WHERE s.kind = 'child' AND (
                    s.status = 'errored' AND (s.error -> 'details' -> 'error')::text IS DISTINCT FROM 'null'
                    OR s.options ->> 'operation' = 'wait_for_instance' AND s.output ->> 'error' IS NOT NULL
                )
            )
            SELECT format('(not shown: step "%s" of instance %s/%s is sensitive)', s.name, i.workflow, i.id)
            FROM heard_of h JOIN engine_instance i ON i.key = h.key JOIN engine_step s ON s.instance_id = h.key
            WHERE h.key <> NEW.key AND s.sensitive AND (s.status <> 'complete' OR s.rollback IN ('running', 'failed'))
            ORDER BY i.key, s.generation, s.seq LIMIT 1
        )"""
NOTE_INSTANCE_AND_OTHERS = (
    NOTE_INSTANCE[0]
    .replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION")
    .replace(_HIDDEN, f"coalesce({_HIDDEN}, {_HIDDEN_OF_OTHERS})"),
    NOTE_INSTANCE[0].replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION"),
)

# A pause by the engine says why; one by people leaves what stands there.
INSTANCE_IS_NOTED = (
    """
    CREATE TRIGGER engine_instance_is_noted AFTER UPDATE OF status, rollback ON engine_instance FOR EACH ROW
    WHEN (
        NEW.status = 'errored' AND OLD.status <> 'errored'
        OR NEW.rollback = 'failed' AND OLD.rollback <> 'failed'
        OR NEW.status = 'paused' AND OLD.status <> 'paused' AND NEW.error IS NOT NULL
            AND NEW.error::text IS DISTINCT FROM OLD.error::text
    )
    EXECUTE FUNCTION engine_note_instance()
    """,
    "DROP TRIGGER engine_instance_is_noted ON engine_instance",
)

# Since 0010, which gives the reason of a pause a column of its own.
NOTE_INSTANCE_BY_REASON = (
    NOTE_INSTANCE_AND_OTHERS[0]
    .replace(
        "NEW.status = 'paused' AND NEW.error ->> 'type'",
        "NEW.status = 'paused' AND NEW.pause_reason ->> 'type'",
    )
    .replace(
        "coalesce(NEW.error ->> 'type', ''), coalesce(hidden, left(NEW.error ->> 'message'",
        "coalesce(NEW.pause_reason ->> 'type', ''), coalesce(hidden, left(NEW.pause_reason ->> 'message'",
    ),
    NOTE_INSTANCE_AND_OTHERS[0],
)
PAUSE_IS_NOTED = (
    INSTANCE_IS_NOTED[0]
    .replace("CREATE TRIGGER", "CREATE OR REPLACE TRIGGER")
    .replace(
        """NEW.error IS NOT NULL
            AND NEW.error::text IS DISTINCT FROM OLD.error::text""",
        "NEW.pause_reason IS NOT NULL",
    ),
    INSTANCE_IS_NOTED[0].replace("CREATE TRIGGER", "CREATE OR REPLACE TRIGGER"),
)

NOTE_ATTEMPT = (
    """
    CREATE FUNCTION engine_note_attempt() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO engine_notice (kind, at, workflow, instance_id, instance_key, generation, step, count, attempt,
            phase, worker)
        SELECT 'attempt_lost', NEW.finished_at, i.workflow, i.id, i.key, NEW.generation, coalesce(s.name, ''),
            coalesce(s.count, 1), NEW.number, NEW.phase, NEW.worker
        FROM engine_instance i
        LEFT JOIN engine_step s ON s.instance_id = i.key AND s.generation = NEW.generation AND s.seq = NEW.step_seq
        WHERE i.key = NEW.instance_id;
        PERFORM pg_notify('engine_wake', 'notice');
        RETURN NULL;
    END
    $$
    """,
    "DROP FUNCTION engine_note_attempt()",
)
ATTEMPT_IS_NOTED = (
    """
    CREATE TRIGGER engine_attempt_is_noted AFTER UPDATE OF status ON engine_attempt FOR EACH ROW
    WHEN (NEW.status = 'lost' AND OLD.status <> 'lost')
    EXECUTE FUNCTION engine_note_attempt()
    """,
    "DROP TRIGGER engine_attempt_is_noted ON engine_attempt",
)

STATEMENTS = (NOTE_INSTANCE, INSTANCE_IS_NOTED, NOTE_ATTEMPT, ATTEMPT_IS_NOTED)
