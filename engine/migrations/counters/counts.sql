-- Counts of what started and ended, written in the transaction that starts or ends it: no code path can forget one, and
-- none is counted twice, because a generation ends with one guarded write.
--
-- They add rows and update none, so that a transaction that is held open delays nobody who starts or ends another
-- instance. A worker adds them up (`engine.steer.workflow_counts`).

-- Each bucket is 1.2 times as wide as the one before: its middle differs by at most 10 % from what is in it. From 1 ms
-- to 1 year.
CREATE OR REPLACE FUNCTION engine_duration_bucket(duration interval) RETURNS smallint LANGUAGE sql IMMUTABLE AS $$
    SELECT least(132, floor(
        ln(greatest(extract(epoch FROM duration)::float8 * 1000, 1.0::float8)) / ln(1.2::float8)
    ))::smallint
$$;

-- When a generation began, as pages tell it: at its restart, or when a worker first ran it.
CREATE OR REPLACE FUNCTION engine_generation_began(
    instance bigint, generation int, started_at timestamptz, created_at timestamptz
) RETURNS timestamptz LANGUAGE sql STABLE AS $$
    SELECT coalesce(CASE WHEN generation > 1 THEN (
        SELECT a.at FROM engine_audit a
        WHERE a.instance_key = instance AND a.verb = 'restart' AND a.outcome = 'done'
        ORDER BY a.key DESC LIMIT 1
    ) END, started_at, created_at)
$$;

-- For a statement, not for each row: thousands of instances may start in one. Restored instances may have ended; that is
-- asked apart, because one statement for both takes longer.
CREATE OR REPLACE FUNCTION engine_count_inserted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO engine_workflow_count_delta (workflow, at, what, amount)
    SELECT workflow, date_trunc('minute', created_at, 'UTC'), 'started', count(*) FROM started GROUP BY 1, 2;
    IF EXISTS (SELECT FROM started WHERE finished_at IS NOT NULL) THEN
        INSERT INTO engine_workflow_count_delta (workflow, at, what, bucket, amount)
        SELECT workflow, date_trunc('minute', finished_at, 'UTC'), status, engine_duration_bucket(
            finished_at - engine_generation_began(key, generation, started_at, created_at)
        ), count(*)
        FROM started WHERE finished_at IS NOT NULL GROUP BY 1, 2, 3, 4;
    END IF;
    RETURN NULL;
END
$$;

CREATE OR REPLACE TRIGGER engine_instance_start_is_counted AFTER INSERT ON engine_instance
REFERENCING NEW TABLE AS started FOR EACH STATEMENT
EXECUTE FUNCTION engine_count_inserted();

-- The end of a generation, and the start of the next one, which is due at once. An end is taken back where it was
-- counted if a failed rollback is retried: the generation will end again.
CREATE OR REPLACE FUNCTION engine_count_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.generation <> OLD.generation THEN
        INSERT INTO engine_workflow_count_delta (workflow, at, what, amount)
        VALUES (NEW.workflow, date_trunc('minute', NEW.wake_at, 'UTC'), 'started', 1);
    ELSIF NEW.finished_at IS NOT NULL THEN
        INSERT INTO engine_workflow_count_delta (workflow, at, what, bucket, amount)
        VALUES (NEW.workflow, date_trunc('minute', NEW.finished_at, 'UTC'), NEW.status, engine_duration_bucket(
            NEW.finished_at - engine_generation_began(NEW.key, NEW.generation, NEW.started_at, NEW.created_at)
        ), 1);
    ELSE
        INSERT INTO engine_workflow_count_delta (workflow, at, what, bucket, amount)
        VALUES (OLD.workflow, date_trunc('minute', OLD.finished_at, 'UTC'), OLD.status, engine_duration_bucket(
            OLD.finished_at - engine_generation_began(OLD.key, OLD.generation, OLD.started_at, OLD.created_at)
        ), -1);
    END IF;
    RETURN NULL;
END
$$;

CREATE OR REPLACE TRIGGER engine_instance_change_is_counted AFTER UPDATE OF status ON engine_instance FOR EACH ROW
WHEN (NEW.generation <> OLD.generation OR (NEW.finished_at IS NULL) <> (OLD.finished_at IS NULL))
EXECUTE FUNCTION engine_count_changed();

-- Rows are added and deleted all the time, and counts of the current hour change every few seconds.
ALTER TABLE engine_workflow_count_delta
SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_insert_scale_factor = 0);
ALTER TABLE engine_workflow_count SET (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02);
