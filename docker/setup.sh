#!/bin/sh
# Runs once before the server: makes both databases and brings their schemas up to date.
set -eu

tool() {
    name=$1
    shift
    temporal-sql-tool --plugin postgres12 --ep postgresql --port 5432 --user temporal --db "$name" "$@"
}

for part in temporal visibility; do
    database=temporal
    [ "$part" = visibility ] && database=temporal_visibility
    tool "$database" create
    tool "$database" setup-schema -v 0.0
    tool "$database" update-schema -d "/etc/temporal/schema/postgresql/v12/$part/versioned"
done
