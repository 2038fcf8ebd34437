#!/bin/sh
# The role of the worker and the roles of nearsim, made by docker-compose.yml when the database is created. The worker
# administers nearsim, but is no superuser. For a database that exists already, run it once in the service postgres:
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
SQL
