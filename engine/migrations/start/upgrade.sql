-- From the tables as 0010_pause_reason left them to those of 0001_start: columns get the names that they have there.
-- After this, the files with functions and triggers are run as for a new database.

ALTER TABLE engine_instance RENAME COLUMN owes TO notify_pending;
ALTER TABLE engine_instance RENAME COLUMN isolated TO quarantined;
ALTER TABLE engine_attempt RENAME COLUMN alone TO quarantined;
ALTER TABLE engine_worker RENAME COLUMN seat TO worker_id;

ALTER INDEX engine_instance_owes RENAME TO engine_instance_notify_pending;
ALTER INDEX engine_instance_isolated RENAME TO engine_instance_quarantined;
ALTER TABLE engine_worker RENAME CONSTRAINT engine_worker_seat_key TO engine_worker_worker_id_key;

-- From PostgreSQL 18 on, NOT NULL is a constraint with a name.
DO $$
DECLARE
    one record;
BEGIN
    FOR one IN
        SELECT c.conrelid::regclass AS relation, c.conname AS was, renamed.becomes
        FROM pg_constraint c JOIN (VALUES
            ('engine_instance_owes_not_null', 'engine_instance_notify_pending_not_null'),
            ('engine_instance_isolated_not_null', 'engine_instance_quarantined_not_null'),
            ('engine_attempt_alone_not_null', 'engine_attempt_quarantined_not_null'),
            ('engine_worker_seat_not_null', 'engine_worker_worker_id_not_null')
        ) AS renamed (was, becomes) ON c.conname = renamed.was
        WHERE c.contype = 'n' AND pg_table_is_visible(c.conrelid)
    LOOP
        EXECUTE format('ALTER TABLE %s RENAME CONSTRAINT %I TO %I', one.relation, one.was, one.becomes);
    END LOOP;
END
$$;

-- What moved the writes of processes of the release before 0010.
DROP TRIGGER engine_instance_pause_reason ON engine_instance;
DROP FUNCTION engine_keep_pause_reason();

-- So that no process of that release takes these tables for its own.
DELETE FROM django_migrations WHERE app = 'engine';
