#!/bin/sh
# The main job from end to end, in a folder that is thrown away: make a store, send a real text
# file into a topic, read it back in a second process, let a consumer fail, send again
# what died, look. `make demo` runs it.
set -eu

text=$(cd "$(dirname "$0")/.." && pwd)/LICENSE
folder=$(mktemp -d)
reader=
finish() {
    if [ -n "$reader" ]; then kill "$reader" 2>/dev/null || true; fi
    rm -rf "$folder"
}
trap finish EXIT
cd "$folder"
grep . "$text" > licence.txt  # without blank lines: RocketMQ refuses empty messages

say() { printf '\n\033[1m# %s\033[0m\n' "$*"; }
run() { printf '$ %s\n' "$*"; eval "$*"; }

say 'A store is a folder. No broker, no JVM, no daemon.'
run 'rmqctl store init ./store --small > broker.conf'
run 'rmqctl topic create licence --queues 1'

say 'A consumer waits in a second process ...'
lines=$(wc -l < licence.txt)
printf '$ rmqctl consume licence -g readers -F -c %s > received.txt &\n' "$lines"
rmqctl consume licence -g readers -F -c "$lines" > received.txt &
reader=$!

say '... while this one sends a text file, a line a message.'
run 'rmqctl produce licence licence.txt'
wait "$reader"
reader=

say 'Every line came through, in order.'
run 'cmp licence.txt received.txt && echo the files are the same'

say 'What is in the store, and how far the group is.'
run 'rmqctl topic queues -o table --columns topic,queue_id,min_offset,max_offset,count,last_timestamp'
run 'rmqctl offset list -o table'

say 'A program consumes, and fails: its message comes again after a second, and is a dead letter then.'
run 'echo "order 7" | rmqctl produce orders --quiet'
run 'rmqctl consume orders -g billing -c 2 --exec false --max-reconsume-times 1 --delay-level 1 || echo "exit code $?"'
run 'rmqctl dlq browse billing -o table --columns msg_id,origin_topic,reconsume_times,reason'

say 'A message is given back: it waits for its next attempt. The dead letter is sent again, marked.'
run 'echo "order 8" | rmqctl produce orders --quiet'
run 'rmqctl consume orders -g billing -c 1 --exec false || echo "exit code $?"'
run 'rmqctl retry browse billing -o table --columns msg_id,reconsume_times,due_timestamp,reason'
run 'rmqctl dlq redrive billing --all --set-property mended=yes --yes -o table'

say 'How late are we? Spark counts (it is needed for many stores; --engine local does without).'
run 'rmqctl lag report -o table --columns group,topic,lag,lag_bytes,oldest_unread_age_ms,status,retry,dlq'

say 'One message with everything that is known about it; then a check of the whole store.'
run "rmqctl consume licence --last 1 -o yaml"
run 'rmqctl store fsck -o yaml'
