-- Values at the declared search paths, written in the transaction that starts, ends or deletes an instance: no code path
-- can forget one. Workflows without paths pay for one look into a small table for each.

-- What a document has at a path. Escapes that do not stand for a character, which the engine never writes, make
-- PostgreSQL refuse the whole document; it is then as if it had nothing there: a start must not fail because of them.
CREATE OR REPLACE FUNCTION engine_json_at(document json, parts text[]) RETURNS json LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN document #> parts;
EXCEPTION WHEN data_exception THEN
    RETURN NULL;
END
$$;

-- The row of `engine_searchvalue` for a document and a full path; no row if there is nothing at the path. The function
-- above is slower, and only needed where an escape occurs. OFFSET 0, so that the value is looked up only once. Numbers
-- that the engine cannot have written get no `number`, because they may not fit.
CREATE OR REPLACE FUNCTION engine_search_value(document json, path text)
RETURNS TABLE (text varchar, number numeric) LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE json_typeof(found.value) WHEN 'object' THEN NULL WHEN 'array' THEN NULL WHEN 'null' THEN 'null'
            ELSE left(found.value #>> '{}', 256) END::varchar,
        CASE WHEN json_typeof(found.value) = 'number' THEN
            CASE WHEN found.value::text ~ '^-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,3})?$'
            THEN found.value::text::numeric END END
    FROM (
        SELECT CASE WHEN strpos(document::text, '\u') = 0 THEN document #> place.parts
            ELSE engine_json_at(document, place.parts) END AS value
        FROM (SELECT (string_to_array(path, '.'))[2:] AS parts) AS place OFFSET 0
    ) AS found
    WHERE found.value IS NOT NULL
$$;

-- For a statement, not for each row: thousands of instances may start in one. The output, because restored instances
-- may have ended.
CREATE OR REPLACE FUNCTION engine_index_started() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM engine_indexedpath) THEN
        INSERT INTO engine_searchvalue (instance_id, path_id, text, number)
        SELECT i.key, p.key, found.text, found.number
        FROM started i JOIN engine_indexedpath p ON p.workflow = i.workflow AND p.is_declared
        CROSS JOIN LATERAL engine_search_value(
            CASE WHEN starts_with(p.path, 'output') THEN i.output ELSE i.params END, p.path
        ) AS found
        ON CONFLICT (instance_id, path_id) DO NOTHING;
    END IF;
    RETURN NULL;
END
$$;

CREATE OR REPLACE TRIGGER engine_instance_start_is_indexed AFTER INSERT ON engine_instance
REFERENCING NEW TABLE AS started FOR EACH STATEMENT
EXECUTE FUNCTION engine_index_started();

-- An output comes when an instance completes, and goes when that is restarted: also from a path that is being removed.
-- Most workflows have no path of the output, so that is asked first.
CREATE OR REPLACE FUNCTION engine_index_ended() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM engine_indexedpath WHERE workflow = NEW.workflow AND starts_with(path, 'output')) THEN
        RETURN NULL;
    END IF;
    IF NEW.status = 'complete' THEN
        INSERT INTO engine_searchvalue (instance_id, path_id, text, number)
        SELECT NEW.key, p.key, found.text, found.number
        FROM engine_indexedpath p CROSS JOIN LATERAL engine_search_value(NEW.output, p.path) AS found
        WHERE p.workflow = NEW.workflow AND p.is_declared AND starts_with(p.path, 'output')
        ON CONFLICT (instance_id, path_id) DO UPDATE SET text = excluded.text, number = excluded.number;
    ELSE
        DELETE FROM engine_searchvalue v USING engine_indexedpath p
        WHERE v.instance_id = NEW.key AND p.key = v.path_id AND starts_with(p.path, 'output');
    END IF;
    RETURN NULL;
END
$$;

CREATE OR REPLACE TRIGGER engine_instance_end_is_indexed AFTER UPDATE OF status ON engine_instance FOR EACH ROW
WHEN ((NEW.status = 'complete') <> (OLD.status = 'complete'))
EXECUTE FUNCTION engine_index_ended();

-- Here and not in the statement of the engine that deletes instances: processes of an earlier version delete some, too.
CREATE OR REPLACE FUNCTION engine_index_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM engine_indexedpath) THEN
        DELETE FROM engine_searchvalue v USING deleted d WHERE v.instance_id = d.key;
    END IF;
    RETURN NULL;
END
$$;

CREATE OR REPLACE TRIGGER engine_instance_delete_is_indexed AFTER DELETE ON engine_instance
REFERENCING OLD TABLE AS deleted FOR EACH STATEMENT
EXECUTE FUNCTION engine_index_deleted();
