# Runs one registry of Erlang nodes in the foreground until standard input ends, then removes everything.
# Arguments: an empty folder, ports to try, the program.
# Answers with one line, `ready PORT`, or with the log of what failed.

folder=$1
ports=$2
program=$3

clean_up() {
    # Nothing is kept, so that nobody is waited for.
    [ -z "$server" ] || kill -KILL "$server"
    wait
    cd / && rm -rf "$folder"
} >/dev/null 2>&1

start() {
    mkfifo "$folder/lines" || return 1
    for port in $ports; do
        # Only a talkative one says that it listens.
        "$program" -d -d -port "$port" -address 127.0.0.1 >"$folder/lines" 2>&1 &
        server=$!
        # When it fails, its last line ends the loop.
        exec 3<"$folder/lines"
        while read -r line <&3; do
            printf '%s\n' "$line" >>"$folder/epmd.log"
            case $line in *"entering the main select() loop"*) return 0 ;; esac
        done
        wait "$server"
        server=
    done
    return 1
}

# What the shell itself complains about belongs to the answer.
exec 2>&1
server=
trap clean_up EXIT
trap 'exit 1' HUP INT TERM
# Whoever waits for the answer may be gone already; the cleaning comes all the same.
trap '' PIPE

if start; then
    # Nobody reads the rest, and a full pipe would stop the server.
    cat <&3 >/dev/null &
    echo "ready $port"
    read -r _
else
    cat "$folder/epmd.log"
    exit 1
fi
