-- Three roles for one database: reprise_owner migrates, reprise_app runs web and workers, reprise_read only reads.
--
-- As a superuser, before the first `migrate` and once more after it (and again whenever you like):
--
--     createdb shop
--     psql --dbname=shop --file=roles.sql
--     DATABASE_URL=postgresql://reprise_owner@…/shop python manage.py migrate
--     psql --dbname=shop --file=roles.sql
--
-- Then give the roles passwords with \password. What later migrations create gets the same rights by itself.

\set ON_ERROR_STOP on
BEGIN;

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['reprise_owner', 'reprise_app', 'reprise_read'] LOOP
        IF to_regrole(name) IS NULL THEN
            EXECUTE format('CREATE ROLE %I LOGIN', name);
        END IF;
    END LOOP;
    -- The owner of the database may create tables in its schema.
    EXECUTE format('ALTER DATABASE %I OWNER TO reprise_owner', current_database());
    -- Nobody else connects.
    EXECUTE format('REVOKE ALL ON DATABASE %I FROM PUBLIC', current_database());
    EXECUTE format('GRANT CONNECT ON DATABASE %I TO reprise_app, reprise_read', current_database());
END
$$;

-- As PostgreSQL 15 and newer make it; a database from before has kept its own ways.
ALTER SCHEMA public OWNER TO pg_database_owner;
REVOKE CREATE ON SCHEMA public FROM PUBLIC;
GRANT USAGE ON SCHEMA public TO reprise_app, reprise_read;

-- Rows, but not tables: no DROP, no ALTER, no TRUNCATE.
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO reprise_app;
GRANT USAGE, SELECT, UPDATE ON ALL SEQUENCES IN SCHEMA public TO reprise_app;
ALTER DEFAULT PRIVILEGES FOR ROLE reprise_owner IN SCHEMA public
    GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO reprise_app;
ALTER DEFAULT PRIVILEGES FOR ROLE reprise_owner IN SCHEMA public
    GRANT USAGE, SELECT, UPDATE ON SEQUENCES TO reprise_app;

-- Workers see when the server last ended all sessions. Without it they take its instances for suspects after a crash of
-- the server, and run each alone at first. It shows the statements of other roles as well: leave it out on a shared
-- server.
GRANT pg_read_all_stats TO reprise_app;

-- Only once the tables are there, so that nothing secret is readable even for a moment.
DO $$
DECLARE
    one record;
    columns text;
BEGIN
    IF to_regclass('engine_instance') IS NULL THEN
        RAISE NOTICE 'There are no tables yet. Run this file again after migrate: reprise_read can read nothing until then.';
        RETURN;
    END IF;

    -- The audit trail grows only.
    REVOKE UPDATE, DELETE ON engine_audit FROM reprise_app;
    -- What migrate has done is read by everyone, and written by the owner.
    REVOKE INSERT, UPDATE, DELETE ON django_migrations FROM reprise_app;

    GRANT SELECT ON ALL TABLES IN SCHEMA public TO reprise_read;
    ALTER DEFAULT PRIVILEGES FOR ROLE reprise_owner IN SCHEMA public GRANT SELECT ON TABLES TO reprise_read;

    -- Whoever reads a session's key is signed in.
    REVOKE SELECT ON django_session FROM reprise_read;
    -- Arguments and results of django-q2 tasks, which may hold anything, as signed pickles.
    REVOKE SELECT ON django_q_ormq, django_q_task, django_q_schedule FROM reprise_read;

    -- All columns of every table but those called password: AUTH_USER_MODEL may be a table of yours.
    FOR one IN
        SELECT c.table_name AS name FROM information_schema.columns AS c
        WHERE c.table_schema = 'public' AND c.column_name = 'password'
    LOOP
        EXECUTE format('REVOKE SELECT ON %I FROM reprise_read', one.name);
        SELECT string_agg(quote_ident(column_name), ', ') INTO columns FROM information_schema.columns
        WHERE table_schema = 'public' AND table_name = one.name AND column_name <> 'password';
        EXECUTE format('GRANT SELECT (%s) ON %I TO reprise_read', columns, one.name);
    END LOOP;
END
$$;

COMMIT;
