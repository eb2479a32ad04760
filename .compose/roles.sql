-- Creates or updates the two roles of the database; psql runs it as the superuser.
--
-- dealer_owner owns the schema and runs `dealer migrate`; `dealer serve` connects as dealer_node.
-- Compose runs this file twice at each start: before the migration, which needs the owner, and after
-- it, because it revokes rights on the new tables. It is idempotent, gives tables that an earlier
-- version created as the superuser to the owner, and sets the passwords, which it reads from files in
-- the folder that SECRETS names.

\set ON_ERROR_STOP on
\set owner_password `cat "$SECRETS/owner_password"`
\set node_password `cat "$SECRETS/node_password"`

BEGIN;
-- Two simultaneous runs must not both create a role.
SELECT pg_advisory_xact_lock(x'6465616c65722f72'::bigint);
-- No statement with a password in it may reach the server's log.
SET LOCAL log_statement = 'none';
SET LOCAL log_min_duration_statement = -1;
SET LOCAL log_min_error_statement = 'panic';

SELECT format('CREATE ROLE %I', name)
FROM unnest(ARRAY['dealer_owner', 'dealer_node']) AS name
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name)
\gexec
ALTER ROLE dealer_owner LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS
    PASSWORD :'owner_password';
ALTER ROLE dealer_node LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS
    PASSWORD :'node_password';

ALTER DATABASE :"DBNAME" OWNER TO dealer_owner;
REVOKE ALL ON DATABASE :"DBNAME" FROM PUBLIC;
GRANT CONNECT ON DATABASE :"DBNAME" TO dealer_node;
ALTER SCHEMA public OWNER TO dealer_owner;
REVOKE ALL ON SCHEMA public FROM PUBLIC;
GRANT USAGE ON SCHEMA public TO dealer_node;

-- Tables, views and functions of an earlier version belong to the superuser that migrated it; those
-- of an extension keep their owner.
SELECT format('ALTER TABLE public.%I OWNER TO dealer_owner', relname)
FROM pg_class c
WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v', 'm')
  AND relowner <> 'dealer_owner'::regrole
  AND NOT EXISTS (SELECT FROM pg_depend WHERE objid = c.oid AND deptype = 'e')
\gexec
SELECT format('ALTER ROUTINE %s OWNER TO dealer_owner', p.oid::regprocedure)
FROM pg_proc p
WHERE pronamespace = 'public'::regnamespace AND proowner <> 'dealer_owner'::regrole
  AND NOT EXISTS (SELECT FROM pg_depend WHERE objid = p.oid AND deptype = 'e')
\gexec

-- A node reads and writes rows of every table, also of those that later migrations create. It owns no
-- table, so it cannot drop, truncate or alter one, or disable a trigger.
ALTER DEFAULT PRIVILEGES FOR ROLE dealer_owner IN SCHEMA public
    GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO dealer_node;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO dealer_node;
-- Revoke rights that a node does not need: it cannot change or delete events or the journal, nor delete
-- checkpoints, and only the owner archives a table (which deletes its events), migrates, or makes and
-- revokes service keys.
SELECT format('REVOKE %s ON public.%I FROM dealer_node', rights, name)
FROM (VALUES
    ('event', 'UPDATE, DELETE'),
    ('events', 'INSERT, UPDATE, DELETE'),
    ('journal', 'UPDATE, DELETE'),
    ('archived', 'INSERT, UPDATE, DELETE'),
    ('stream', 'DELETE'),
    ('checkpoint', 'DELETE'),
    ('house', 'UPDATE, DELETE'),
    ('seat_subject', 'DELETE'),
    ('service_key', 'INSERT, UPDATE, DELETE'),
    ('service_table', 'UPDATE, DELETE'),
    ('alembic_version', 'INSERT, UPDATE, DELETE')
) AS narrowed (name, rights)
WHERE to_regclass(format('public.%I', name)) IS NOT NULL
\gexec
-- Nodes reach the partitions of a table through the table only.
SELECT format('REVOKE ALL ON %s FROM dealer_node', inhrelid::regclass)
FROM pg_inherits WHERE inhparent = to_regclass('public.event')
\gexec
COMMIT;
