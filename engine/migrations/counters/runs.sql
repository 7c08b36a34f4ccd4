-- Counts of what workers do, written in the transaction that does it, like those of starts and ends. No transaction
-- waits for another: they only add rows.

-- A worker runs a generation for the first time. It was due at `wake_at`: when it was started, restarted or resumed, or
-- at the time for which it was started.
CREATE OR REPLACE FUNCTION engine_count_began() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO engine_workflow_count_delta (workflow, at, what, bucket, amount)
    VALUES (NEW.workflow, date_trunc('minute', NEW.started_at, 'UTC'), 'began',
        engine_duration_bucket(NEW.started_at - coalesce(OLD.wake_at, NEW.started_at)), 1);
    RETURN NULL;
END
$$;

CREATE OR REPLACE TRIGGER engine_instance_began_is_counted AFTER UPDATE OF started_at ON engine_instance FOR EACH ROW
WHEN (OLD.started_at IS NULL AND NEW.started_at IS NOT NULL)
EXECUTE FUNCTION engine_count_began();

-- Restored instances may have run.
CREATE OR REPLACE FUNCTION engine_count_inserted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO engine_workflow_count_delta (workflow, at, what, amount)
    SELECT workflow, date_trunc('minute', created_at, 'UTC'), 'started', count(*) FROM started GROUP BY 1, 2;
    IF EXISTS (SELECT FROM started WHERE started_at IS NOT NULL OR finished_at IS NOT NULL) THEN
        INSERT INTO engine_workflow_count_delta (workflow, at, what, bucket, amount)
        SELECT workflow, date_trunc('minute', finished_at, 'UTC'), status, engine_duration_bucket(
            finished_at - engine_generation_began(key, generation, started_at, created_at)
        ), count(*)
        FROM started WHERE finished_at IS NOT NULL GROUP BY 1, 2, 3, 4
        UNION ALL
        SELECT workflow, date_trunc('minute', started_at, 'UTC'), 'began',
            engine_duration_bucket(started_at - coalesce(starts_at, created_at)), count(*)
        FROM started WHERE started_at IS NOT NULL GROUP BY 1, 2, 4;
    END IF;
    RETURN NULL;
END
$$;

-- A restart that keeps steps keeps `started_at`, too: it is counted at once, and without a latency.
CREATE OR REPLACE FUNCTION engine_count_continued() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO engine_workflow_count_delta (workflow, at, what, amount)
    VALUES (NEW.workflow, date_trunc('minute', NEW.wake_at, 'UTC'), 'began', 1);
    RETURN NULL;
END
$$;

CREATE OR REPLACE TRIGGER engine_instance_continued_is_counted AFTER UPDATE OF generation ON engine_instance
FOR EACH ROW WHEN (NEW.generation <> OLD.generation AND NEW.started_at IS NOT NULL)
EXECUTE FUNCTION engine_count_continued();

-- An attempt at a step that is not the first: a retry, also one of a person, or after the death of a worker.
CREATE OR REPLACE FUNCTION engine_count_retried() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO engine_workflow_count_delta (workflow, at, what, amount)
    SELECT workflow, date_trunc('minute', NEW.started_at, 'UTC'), 'retried', 1
    FROM engine_instance WHERE key = NEW.instance_id;
    RETURN NULL;
END
$$;

CREATE OR REPLACE TRIGGER engine_attempt_retry_is_counted AFTER INSERT ON engine_attempt FOR EACH ROW
WHEN (NEW.number > 1 AND NEW.phase = 'do' AND NEW.status = 'running')
EXECUTE FUNCTION engine_count_retried();

-- Attempts that succeeded, for a statement and not for each row: one checkpoint ends many. It may write again what was
-- written before an answer was lost; EXCEPT compares by hash, where the plan of a join would be the one that was best
-- for the first checkpoint of the session. So would that of a join with the instances: OFFSET 0 looks up each by itself.
CREATE OR REPLACE FUNCTION engine_count_succeeded() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO engine_workflow_count_delta (workflow, at, what, bucket, amount)
    SELECT instance.workflow, date_trunc('minute', ended.finished_at, 'UTC'), 'succeeded',
        engine_duration_bucket(ended.finished_at - ended.started_at), count(*)
    FROM (
        SELECT instance_id, generation, step_seq, number, started_at, finished_at
        FROM later WHERE status = 'complete' AND phase = 'do'
        EXCEPT ALL
        SELECT instance_id, generation, step_seq, number, started_at, finished_at
        FROM earlier WHERE status = 'complete' AND phase = 'do'
    ) AS ended CROSS JOIN LATERAL (
        SELECT workflow FROM engine_instance WHERE key = ended.instance_id OFFSET 0
    ) AS instance
    GROUP BY 1, 2, 4;
    RETURN NULL;
END
$$;

CREATE OR REPLACE TRIGGER engine_attempt_success_is_counted AFTER UPDATE ON engine_attempt
REFERENCING OLD TABLE AS earlier NEW TABLE AS later FOR EACH STATEMENT
EXECUTE FUNCTION engine_count_succeeded();
