# Runs one throwaway PostgreSQL server until standard input ends, then removes everything.
# Arguments: an empty folder, ports to try, the folder of the server's programs, settings for the server.
# Answers with one line, `ready PORT`, or with the logs of what failed.

folder=$1
ports=$2
bin=$3
settings=$4

clean_up() {
    # Nothing is kept, so that the server need not write anything down.
    "$bin/pg_ctl" stop -D "$folder/data" -m immediate -w -s >/dev/null 2>&1
    cd / && rm -rf "$folder"
}

start() {
    umask 077
    printf '%s\n' "$IDEM_WATCHDOG_PASSWORD" >"$folder/password" &&
        "$bin/initdb" -D "$folder/data" -U postgres --pwfile="$folder/password" --auth=password \
            --encoding=UTF8 --no-locale --no-sync >"$folder/initdb.log" 2>&1 || return 1
    unset IDEM_WATCHDOG_PASSWORD
    for port in $ports; do
        if "$bin/pg_ctl" start -D "$folder/data" -l "$folder/data/server.log" -w -t 60 -s \
            -o "-p $port $settings" >"$folder/pg_ctl.log" 2>&1; then
            return 0
        fi
    done
    return 1
}

# What the shell itself complains about belongs to the answer.
exec 2>&1
trap clean_up EXIT
trap 'exit 1' HUP INT TERM
# Whoever waits for the answer may be gone already; the cleaning comes all the same.
trap '' PIPE

if start; then
    echo "ready $port"
    read -r _
else
    cat "$folder/initdb.log" "$folder/pg_ctl.log" "$folder/data/server.log"
    exit 1
fi
