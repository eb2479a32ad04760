-- Creates or updates the two roles of the database; psql runs it as the superuser.
--
-- dealer_owner owns the schema and runs `dealer migrate`; dealer_node is what `dealer serve` connects
-- as. Compose runs this file twice at each start: before the migration, which needs the owner, and
-- after it, when the tables exist whose rights are narrowed below. It changes nothing that is right
-- already, takes over tables that an earlier version created as the superuser, and sets the
-- passwords, which are read from files in the folder that SECRETS names.

\set ON_ERROR_STOP on
\set owner_password `cat "$SECRETS/owner_password"`
\set node_password `cat "$SECRETS/node_password"`

BEGIN;
-- Two runs at once must not both create a role.
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

-- Tables, views and functions of an earlier version belong to the superuser who migrated it; what
-- an extension brought stays its own.
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

-- A node reads and writes rows of every table, those of later migrations included, and owns none:
-- it can drop, truncate or alter nothing and disable no trigger.
ALTER DEFAULT PRIVILEGES FOR ROLE dealer_owner IN SCHEMA public
    GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO dealer_node;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO dealer_node;
-- What no node ever does, it may not: events, the journal and checkpoints stay, and only the owner
-- archives a table (`archived` is what lets the triggers delete events) or migrates.
SELECT format('REVOKE %s ON public.%I FROM dealer_node', rights, name)
FROM (VALUES
    ('event', 'UPDATE, DELETE'),
    ('journal', 'UPDATE, DELETE'),
    ('archived', 'INSERT, UPDATE, DELETE'),
    ('stream', 'DELETE'),
    ('checkpoint', 'DELETE'),
    ('house', 'UPDATE, DELETE'),
    ('alembic_version', 'INSERT, UPDATE, DELETE')
) AS narrowed (name, rights)
WHERE to_regclass(format('public.%I', name)) IS NOT NULL
\gexec
COMMIT;
