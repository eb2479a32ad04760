-- Creates or updates the two roles of the database; psql runs it as an administrator: a superuser, or, as at most
-- providers of PostgreSQL (14 to 18), the database's owner with the right CREATEROLE.
--
-- dealer_owner owns the tables and runs `dealer migrate`; `dealer serve` connects as dealer_node.
-- Compose runs this file twice at each start: before the migration, which needs the owner, and after
-- it, because it revokes rights on the new tables. It is idempotent, gives tables that an earlier
-- version created as the administrator to the owner, and sets the passwords, which it reads from files in
-- the folder that SECRETS names. It leaves the owner of the database and of the schema as they are.

\set ON_ERROR_STOP on
\set owner_password `cat "$SECRETS/owner_password"`
\set node_password `cat "$SECRETS/node_password"`

BEGIN;
-- Two simultaneous runs must not both create a role.
SELECT pg_advisory_xact_lock(x'6465616c65722f72'::bigint);

-- What a superuser may always do, and another administrator only with rights of its own. Before PostgreSQL 15
-- no other role can be given the right to change these settings.
SELECT rolsuper AS is_superuser,
    current_setting('server_version_num')::integer >= 150000 AS has_rights_on_settings
FROM pg_roles WHERE rolname = current_user
\gset
\set may_silence :is_superuser
\if :has_rights_on_settings
    SELECT bool_and(has_parameter_privilege(name, 'SET')) AS may_silence
    FROM unnest(ARRAY['log_statement', 'log_min_duration_statement', 'log_min_error_statement']) AS name
    \gset
\endif
SELECT pg_has_role(datdba, 'USAGE') AS may_database, pg_has_role(nspowner, 'USAGE') AS may_schema
FROM pg_database, pg_namespace WHERE datname = current_database() AND nspname = 'public'
\gset

-- No statement with a password in it may reach the server's log. Where these settings cannot be changed, only one
-- SELECT has the passwords: settings that log changes of the schema (ddl, mod) do not log it, nor what DO executes.
\if :may_silence
    SET LOCAL log_statement = 'none';
    SET LOCAL log_min_duration_statement = -1;
    SET LOCAL log_min_error_statement = 'panic';
\endif
DO $$
BEGIN
    IF current_setting('log_statement') = 'all' OR current_setting('log_min_duration_statement') = '0' THEN
        RAISE EXCEPTION 'This server writes every statement to its log, and so would write the passwords.'
            USING HINT = 'Set log_statement to ddl, and log_min_duration_statement to -1, while this file runs.';
    END IF;
END $$;

SELECT format('CREATE ROLE %I LOGIN', name)
FROM unnest(ARRAY['dealer_owner', 'dealer_node']) AS name
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name)
\gexec
SELECT set_config('dealer.owner_password', :'owner_password', true) AS owner_password,
    set_config('dealer.node_password', :'node_password', true) AS node_password
\gset
DO $$
BEGIN
    EXECUTE format('ALTER ROLE dealer_owner PASSWORD %L', current_setting('dealer.owner_password'));
    EXECUTE format('ALTER ROLE dealer_node PASSWORD %L', current_setting('dealer.node_password'));
END $$;

-- A role that was created in another way, such as a provider's page, may have more rights than these two need. Only
-- a superuser may take them away, so this file says it.
DO $$
DECLARE
    found text;
BEGIN
    SELECT string_agg(rolname, ', ') INTO found FROM pg_roles
    WHERE rolname IN ('dealer_owner', 'dealer_node')
      AND (rolsuper OR rolcreatedb OR rolcreaterole OR rolreplication OR rolbypassrls);
    IF found IS NOT NULL OR pg_has_role('dealer_node', 'dealer_owner', 'MEMBER') THEN
        RAISE EXCEPTION 'A role may more than it needs: %', coalesce(found, 'dealer_node may act as dealer_owner')
            USING HINT = 'Drop the roles dealer_owner and dealer_node, or take these rights from them: this file creates both.';
    END IF;
    SELECT string_agg(roleid::regrole::text, ', ') INTO found FROM pg_auth_members
    WHERE member = 'dealer_node'::regrole;
    IF found IS NOT NULL THEN
        RAISE WARNING 'dealer_node is a member of %: it may do what that role may', found;
    END IF;
END $$;

-- A superuser may act as any role. Another administrator becomes a member of the owner, whose tables it can then
-- also dump; since PostgreSQL 16 it is one already, but without the right to act as it.
\if :is_superuser
\else
    SET LOCAL client_min_messages = 'warning'; -- that it is a member already
    GRANT dealer_owner TO CURRENT_USER;
    RESET client_min_messages;
\endif

\if :may_database
    REVOKE ALL ON DATABASE :"DBNAME" FROM PUBLIC;
    GRANT CONNECT ON DATABASE :"DBNAME" TO dealer_owner, dealer_node;
\endif
\if :may_schema
    REVOKE ALL ON SCHEMA public FROM PUBLIC;
    GRANT USAGE, CREATE ON SCHEMA public TO dealer_owner;
    GRANT USAGE ON SCHEMA public TO dealer_node;
\endif
-- Until PostgreSQL 14 the schema belongs to a superuser, also in a database of another owner.
DO $$
BEGIN
    IF NOT has_database_privilege('dealer_node', current_database(), 'CONNECT')
        OR NOT has_database_privilege('dealer_owner', current_database(), 'CONNECT')
        OR NOT has_schema_privilege('dealer_owner', 'public', 'USAGE, CREATE')
        OR NOT has_schema_privilege('dealer_node', 'public', 'USAGE') THEN
        RAISE EXCEPTION 'dealer_owner and dealer_node lack rights on this database or its schema public.'
            USING HINT = 'Run this file as the owner of the database: best is one that you created for dealer alone.';
    END IF;
    IF has_schema_privilege('dealer_node', 'public', 'CREATE') THEN
        RAISE WARNING 'dealer_node can create tables in the schema public, as every user of this database can'
            USING HINT = 'Let the owner of the schema run: REVOKE CREATE ON SCHEMA public FROM PUBLIC';
    END IF;
END $$;

-- Tables, views and functions of an earlier version belong to the administrator that migrated it; those
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

-- What follows are rights on the owner's own tables.
SET LOCAL ROLE dealer_owner;
-- A node reads and writes rows of every table, also of those that later migrations create. It owns no
-- table, so it cannot drop, truncate or alter one, or disable a trigger.
ALTER DEFAULT PRIVILEGES IN SCHEMA public
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
