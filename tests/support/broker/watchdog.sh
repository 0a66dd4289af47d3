# Runs one message broker, as often as it is told to, until standard input ends, then removes everything.
# Arguments: the broker's folder, then the command that is the broker.
# Each line of standard input is an order, and `done` the answer when it is carried out, `failed` when it cannot be:
#   start                   starts the broker, which writes to server.log in the folder. When it has ended, there is `ended`.
#   TERM, KILL, STOP, CONT  sends it the signal, unless it has ended. After STOP it does nothing any more.

folder=$1
shift

# How often it is looked whether a broker is still: each look takes some milliseconds.
most_looks=10000

clean_up() {
    # Nothing is kept, so that nobody is waited for.
    signal KILL
    wait
    cd / && rm -rf "$folder"
} >/dev/null 2>&1

start() {
    rm -f "$folder/ended" "$folder/pid"
    (
        "$@" >>"$folder/server.log" 2>&1 </dev/null &
        echo "$!" >"$folder/pid"
        echo done
        wait "$!"
        : >"$folder/ended"
    ) &
}

signal() {
    runs || return 0
    # It may end at this moment.
    kill "-$1" "$pid" 2>/dev/null || true
    [ "$1" = STOP ] || return 0
    # The signal is only on its way when `kill` returns, and threads that it has not reached go on answering.
    looks=0
    until is_still || ! runs; do
        looks=$((looks + 1))
        [ "$looks" -lt "$most_looks" ] || return 1
    done
}

runs() {
    [ -e "$folder/pid" ] && [ ! -e "$folder/ended" ] && pid=$(cat "$folder/pid")
}

is_still() {
    if [ -d "/proc/$pid/task" ]; then
        # The state of each thread comes after its name, which is in parentheses.
        ! cat "/proc/$pid/task/"*/stat | sed 's/.*) //' | grep -q '^[^T]'
    else
        ps -o state= -p "$pid" | grep -q T
    fi
}

trap clean_up EXIT
trap 'exit 1' HUP INT TERM
# Whoever waits for the answer may be gone already; the cleaning comes all the same.
trap '' PIPE

while read -r order; do
    case $order in
        # It answers itself, when its number is known.
        start) start "$@" ;;
        # One that is held still would not hear of it.
        TERM) signal TERM && signal CONT && echo done ;;
        *) signal "$order" && echo done ;;
    esac || echo failed
done
