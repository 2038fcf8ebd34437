#!/bin/sh
# The role of the worker and the roles of nearsim, made by docker-compose.yml when the database is created, and by
# citus-compose.yml on each server. The worker administers nearsim, but is no superuser. For a database that exists
# already, run it once in the service postgres, or in the coordinator, which passes it on to nodes that it has:
#   docker compose exec postgres sh /docker-entrypoint-initdb.d/nearsim-roles.sh
set -eu
psql --quiet --no-psqlrc --set=ON_ERROR_STOP=1 --username="$POSTGRES_USER" --dbname="$POSTGRES_DB" \
    --set=password="$NEARSIM_WORKER_PASSWORD" <<'SQL'
SELECT format('CREATE ROLE %I NOLOGIN', name)
FROM (VALUES ('nearsim_reader'), ('nearsim_writer'), ('nearsim_admin')) AS wanted (name)
WHERE to_regrole(name) IS NULL
\gexec
GRANT nearsim_reader TO nearsim_writer;
GRANT nearsim_reader, nearsim_writer TO nearsim_admin WITH ADMIN OPTION;
CREATE ROLE nearsim_worker LOGIN PASSWORD :'password';
GRANT nearsim_admin TO nearsim_worker;
SELECT format('GRANT CREATE ON DATABASE %I TO nearsim_worker', current_database())
\gexec
-- With which a coordinator logs in to its nodes as the worker, quoted as in a connection string
SELECT format('INSERT INTO pg_dist_authinfo (nodeid, rolename, authinfo) VALUES (0, %L, %L)', 'nearsim_worker',
    'password=''' || regexp_replace(:'password', '([\\''])', '\\\1', 'g') || '''')
WHERE to_regclass('pg_dist_authinfo') IS NOT NULL
\gexec
SQL
