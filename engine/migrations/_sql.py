"""What the ORM cannot say about the tables: records that nothing may change, and how the busy ones are kept.

Each entry is a statement and the one that takes it back.
"""

REFUSE = (
    """
    CREATE FUNCTION engine_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        RAISE EXCEPTION '%', TG_ARGV[0] USING ERRCODE = 'restrict_violation', TABLE = TG_TABLE_NAME;
    END
    $$
    """,
    "DROP FUNCTION engine_refuse()",
)

# What a replay returned once, every later one must return. The rollback of a finished step comes after its end.
STEP_IS_FINAL = (
    """
    CREATE TRIGGER engine_step_is_final BEFORE UPDATE ON engine_step FOR EACH ROW
    WHEN (
        OLD.status IN ('complete', 'errored', 'cancelled')
        AND (NEW.status, NEW.output::text, NEW.error::text, NEW.delivery, NEW.kind, NEW.name, NEW.count, NEW.finished_at)
        IS DISTINCT FROM
        (OLD.status, OLD.output::text, OLD.error::text, OLD.delivery, OLD.kind, OLD.name, OLD.count, OLD.finished_at)
    )
    EXECUTE FUNCTION engine_refuse('A finished step never changes.')
    """,
    "DROP TRIGGER engine_step_is_final ON engine_step",
)

# `OF`, so that the values, up to 1 MiB, are compared only by statements that name them: no heartbeat does.
INSTANCE_IS_FINAL = (
    """
    CREATE TRIGGER engine_instance_is_final
    BEFORE UPDATE OF status, output, error, finished_at ON engine_instance FOR EACH ROW
    WHEN (
        OLD.status IN ('complete', 'errored', 'terminated') AND NEW.generation = OLD.generation
        AND (NEW.status, NEW.output::text, NEW.error::text, NEW.finished_at)
        IS DISTINCT FROM (OLD.status, OLD.output::text, OLD.error::text, OLD.finished_at)
    )
    EXECUTE FUNCTION engine_refuse('A finished generation of an instance never changes.')
    """,
    "DROP TRIGGER engine_instance_is_final ON engine_instance",
)

INSTANCE_IS_ITSELF = (
    """
    CREATE TRIGGER engine_instance_is_itself
    BEFORE UPDATE OF workflow, id, params, created_at ON engine_instance FOR EACH ROW
    WHEN (
        (NEW.workflow, NEW.id, NEW.params::text, NEW.created_at)
        IS DISTINCT FROM (OLD.workflow, OLD.id, OLD.params::text, OLD.created_at)
    )
    EXECUTE FUNCTION engine_refuse('The workflow, id, params and creation time of an instance never change.')
    """,
    "DROP TRIGGER engine_instance_is_itself ON engine_instance",
)

AUDIT_IS_APPEND_ONLY = (
    """
    CREATE TRIGGER engine_audit_is_append_only BEFORE UPDATE OR DELETE ON engine_audit FOR EACH ROW
    EXECUTE FUNCTION engine_refuse('The audit trail is append-only.')
    """,
    "DROP TRIGGER engine_audit_is_append_only ON engine_audit",
)

# Since 0005. But for databases of tests, which Django empties so.
AUDIT_IS_NOT_TRUNCATED = (
    """
    CREATE OR REPLACE TRIGGER engine_audit_is_not_truncated BEFORE TRUNCATE ON engine_audit FOR EACH STATEMENT
    WHEN (NOT starts_with(current_database(), 'test_'))
    EXECUTE FUNCTION engine_refuse('The audit trail is append-only.')
    """,
    "DROP TRIGGER engine_audit_is_not_truncated ON engine_audit",
)

# Once, in 0005: from then on whatever pauses an instance does so.
LOSE_ATTEMPTS_OF_PAUSED = """
    WITH paused AS MATERIALIZED (
        SELECT key, generation, paused_at FROM engine_instance WHERE status = 'paused'
        ORDER BY key FOR NO KEY UPDATE
    ), lost AS (
        UPDATE engine_attempt a SET status = 'lost', finished_at = clock_timestamp()
        FROM paused p
        WHERE a.instance_id = p.key AND a.generation = p.generation AND a.status = 'running'
        RETURNING a.instance_id, a.generation, a.step_seq, a.phase, p.paused_at
    )
    UPDATE engine_step s SET lost = s.lost + 1,
        wake_at = CASE WHEN s.status = 'running' THEN l.paused_at ELSE s.wake_at END,  -- a resume shifts it
        status = CASE WHEN s.status = 'running' THEN 'waiting' ELSE s.status END
    FROM lost l
    WHERE s.instance_id = l.instance_id AND s.generation = l.generation AND s.seq = l.step_seq AND l.phase = 'do'
"""

GENERATION_IS_FINAL = (
    """
    CREATE TRIGGER engine_generation_is_final BEFORE UPDATE ON engine_generation FOR EACH ROW
    EXECUTE FUNCTION engine_refuse('An earlier generation never changes.')
    """,
    "DROP TRIGGER engine_generation_is_final ON engine_generation",
)

# Since 0003. The outcome of an atomic step is recorded before it has its turn, which comes with a later checkpoint.
STEP_IS_FINAL_BUT_FOR_ITS_TURN = (
    STEP_IS_FINAL[0].replace(
        "NEW.delivery, NEW.kind",
        "CASE WHEN OLD.status <> 'complete' OR OLD.delivery IS NOT NULL THEN NEW.delivery END, NEW.kind",
    ),
    STEP_IS_FINAL[1],
)
# Since 0003. What failed while it was rolled back may be rolled back again.
INSTANCE_IS_FINAL_BUT_FOR_ITS_ROLLBACK = (
    INSTANCE_IS_FINAL[0].replace(
        "AND NEW.generation = OLD.generation",
        "AND NEW.generation = OLD.generation AND NOT (OLD.rollback = 'failed' AND NEW.rollback = 'running')",
    ),
    INSTANCE_IS_FINAL[1],
)

# Since 0003. Whoever ends a step, the request is not open any more.
KEEP_REQUEST = (
    """
    CREATE FUNCTION engine_keep_request() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF NEW.status = 'waiting' THEN
            INSERT INTO engine_open_request (instance_id, generation, seq, opened_at, expires_at, assignees)
            VALUES (NEW.instance_id, NEW.generation, NEW.seq, NEW.started_at, NEW.wake_at,
                ARRAY(SELECT json_array_elements_text(NEW.options -> 'assignees')))
            ON CONFLICT (instance_id, generation, seq) DO UPDATE SET expires_at = excluded.expires_at;
        ELSE
            DELETE FROM engine_open_request
            WHERE instance_id = NEW.instance_id AND generation = NEW.generation AND seq = NEW.seq;
        END IF;
        RETURN NULL;
    END
    $$
    """,
    "DROP FUNCTION engine_keep_request()",
)
STEP_KEEPS_REQUEST = (
    """
    CREATE TRIGGER engine_step_keeps_request AFTER INSERT OR UPDATE ON engine_step FOR EACH ROW
    WHEN (NEW.kind = 'request')
    EXECUTE FUNCTION engine_keep_request()
    """,
    "DROP TRIGGER engine_step_keeps_request ON engine_step",
)

# Since 0008. How it ended, its step says; a step that a restart has kept ended in an earlier generation.
KEEP_REQUEST_ALSO_ENDED = (
    KEEP_REQUEST[0]
    .replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION")
    .replace(
        "AND seq = NEW.seq;",
        """AND seq = NEW.seq;
            IF NEW.finished_at IS NOT NULL AND NEW.kept_from IS NULL THEN
                INSERT INTO engine_ended_request (instance_id, generation, seq, ended_at)
                VALUES (NEW.instance_id, NEW.generation, NEW.seq, NEW.finished_at)
                ON CONFLICT DO NOTHING;
            END IF;""",
    ),
    KEEP_REQUEST[0].replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION"),
)
# Those that ended before; one pass over the steps.
COPY_ENDED_REQUESTS = """
    INSERT INTO engine_ended_request (instance_id, generation, seq, ended_at)
    SELECT s.instance_id, s.generation, s.seq, s.finished_at FROM engine_step s
    WHERE s.kind = 'request' AND s.finished_at IS NOT NULL AND s.kept_from IS NULL
    ON CONFLICT DO NOTHING
"""

# Rows are updated several times in their life: room on the page keeps new versions near, and frequent small
# vacuums keep the index of what is due free of dead entries, which every claim would otherwise step over.
INSTANCE_STORAGE = (
    """
    ALTER TABLE engine_instance
    SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500)
    """,
    "ALTER TABLE engine_instance RESET (fillfactor, autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold)",
)
STEP_STORAGE = (
    "ALTER TABLE engine_step SET (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.05)",
    "ALTER TABLE engine_step RESET (fillfactor, autovacuum_vacuum_scale_factor)",
)
ATTEMPT_STORAGE = (
    "ALTER TABLE engine_attempt SET (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.05)",
    "ALTER TABLE engine_attempt RESET (fillfactor, autovacuum_vacuum_scale_factor)",
)

STATEMENTS = (
    REFUSE,
    STEP_IS_FINAL,
    INSTANCE_IS_FINAL,
    INSTANCE_IS_ITSELF,
    AUDIT_IS_APPEND_ONLY,
    GENERATION_IS_FINAL,
    INSTANCE_STORAGE,
    STEP_STORAGE,
    ATTEMPT_STORAGE,
)

CHANGES_OF_0003 = (
    (STEP_IS_FINAL[1], STEP_IS_FINAL[0]),
    STEP_IS_FINAL_BUT_FOR_ITS_TURN,
    (INSTANCE_IS_FINAL[1], INSTANCE_IS_FINAL[0]),
    INSTANCE_IS_FINAL_BUT_FOR_ITS_ROLLBACK,
    KEEP_REQUEST,
    STEP_KEEPS_REQUEST,
)
