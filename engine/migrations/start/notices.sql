-- Notices of failures, written in the transaction in which something fails: no code path can forget one.
--
-- The happy path pays for the conditions of the triggers only. They are AFTER triggers, so that the functions see what
-- the same statement wrote to steps and attempts. A notice has at most 4,000 characters of an error's message; all of
-- it is stored with the instance.

-- `hidden` replaces the message where a sensitive step has failed: the handler may repeat what that step hides.
--
-- First the instance's own steps, then those of others. An instance that waited for another one got that one's error,
-- which may have come from a third. All generations of the others count: the present one may have begun after the error.
--
-- An instance whose failed rollback is retried ends a second time with the same outcome: there is no second notice.
CREATE OR REPLACE FUNCTION engine_note_instance() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    hidden constant text := coalesce((
        SELECT format('(not shown: step "%s" is sensitive)', s.name) FROM engine_step s
        WHERE s.instance_id = NEW.key AND s.generation = NEW.generation AND s.sensitive
          AND (s.status = 'errored' OR s.rollback IN ('running', 'failed')
               OR NEW.status = 'paused' AND NEW.pause_reason ->> 'type' <> 'CodeChangedError')
        ORDER BY s.seq LIMIT 1
    ), (
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
    ));
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
            coalesce(hidden, left(NEW.error ->> 'message', 4000), ''));
    END IF;
    IF NEW.rollback = 'failed' AND OLD.rollback <> 'failed' THEN
        INSERT INTO engine_notice (kind, at, workflow, instance_id, instance_key, generation, step, count,
            error_type, error_message)
        SELECT 'rollback_failed', coalesce(NEW.finished_at, clock_timestamp()), NEW.workflow, NEW.id, NEW.key,
            NEW.generation, coalesce(s.name, ''), coalesce(s.count, 1), coalesce(a.error ->> 'type', ''),
            coalesce(hidden, left(a.error ->> 'message', 4000), '')
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
            coalesce(NEW.pause_reason ->> 'type', ''),
            coalesce(hidden, left(NEW.pause_reason ->> 'message', 4000), ''));
    END IF;
    PERFORM pg_notify('engine_wake', 'notice');
    RETURN NULL;
END
$$;

-- A pause by the engine has a reason; one by a person has none, and is no failure.
CREATE OR REPLACE TRIGGER engine_instance_is_noted AFTER UPDATE OF status, rollback ON engine_instance FOR EACH ROW
WHEN (
    NEW.status = 'errored' AND OLD.status <> 'errored'
    OR NEW.rollback = 'failed' AND OLD.rollback <> 'failed'
    OR NEW.status = 'paused' AND OLD.status <> 'paused' AND NEW.pause_reason IS NOT NULL
)
EXECUTE FUNCTION engine_note_instance();

CREATE OR REPLACE FUNCTION engine_note_attempt() RETURNS trigger LANGUAGE plpgsql AS $$
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
$$;

CREATE OR REPLACE TRIGGER engine_attempt_is_noted AFTER UPDATE OF status ON engine_attempt FOR EACH ROW
WHEN (NEW.status = 'lost' AND OLD.status <> 'lost')
EXECUTE FUNCTION engine_note_attempt();
