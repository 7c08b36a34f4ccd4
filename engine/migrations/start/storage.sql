-- Rows of these tables are updated several times in their life. Room on the page keeps new versions near, and frequent
-- small vacuums keep the index of what is due free of dead entries, which every claim would otherwise step over.

ALTER TABLE engine_instance
SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);

ALTER TABLE engine_step SET (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.05);

ALTER TABLE engine_attempt SET (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.05);
