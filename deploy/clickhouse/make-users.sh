#!/bin/bash
# Gives a ClickHouse server the roles of sql/grants (in /grants) and two users, whose passwords are the secrets
# store_password and dashboard_password. Safe to repeat: a changed password or a new view's grant takes effect.
set -euo pipefail

client() { clickhouse-client --host 127.0.0.1 --multiquery "$@"; }

for role in writer analyst dashboard; do
  client < "/grants/$role.sql"
done

# name, secret, role
make_user() {
  local hash
  # The server is given the hash, so no log of its statements holds the password.
  hash="$(tr -d '\r\n' < "/run/secrets/$2" | sha256sum | cut -d' ' -f1)"
  client --query "
    CREATE USER IF NOT EXISTS $1 IDENTIFIED WITH sha256_hash BY '$hash';
    ALTER USER $1 IDENTIFIED WITH sha256_hash BY '$hash';
    GRANT $3 TO $1;
    SET DEFAULT ROLE $3 TO $1;"
}
make_user gnomon store_password gnomon_writer
make_user gnomon_dashboard dashboard_password gnomon_dashboard
echo "roles and users are made"
