-- Open and ended requests, kept beside the steps: an index on the steps would make every checkpoint pay for it.

-- When a step ends, for any reason, its request is no longer open. The step says how it ended. A step that a restart has kept ended
-- in an earlier generation.
CREATE OR REPLACE FUNCTION engine_keep_request() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.status = 'waiting' THEN
        INSERT INTO engine_open_request (instance_id, generation, seq, opened_at, expires_at, assignees)
        VALUES (NEW.instance_id, NEW.generation, NEW.seq, NEW.started_at, NEW.wake_at,
            ARRAY(SELECT json_array_elements_text(NEW.options -> 'assignees')))
        ON CONFLICT (instance_id, generation, seq) DO UPDATE SET expires_at = excluded.expires_at;
    ELSE
        DELETE FROM engine_open_request
        WHERE instance_id = NEW.instance_id AND generation = NEW.generation AND seq = NEW.seq;
        IF NEW.finished_at IS NOT NULL AND NEW.kept_from IS NULL THEN
            INSERT INTO engine_ended_request (instance_id, generation, seq, ended_at)
            VALUES (NEW.instance_id, NEW.generation, NEW.seq, NEW.finished_at)
            ON CONFLICT DO NOTHING;
        END IF;
    END IF;
    RETURN NULL;
END
$$;

CREATE OR REPLACE TRIGGER engine_step_keeps_request AFTER INSERT OR UPDATE ON engine_step FOR EACH ROW
WHEN (NEW.kind = 'request')
EXECUTE FUNCTION engine_keep_request();
