#!/usr/bin/env bash
# Make a store with an older rmqctl, and what that one reads in it:
#   git archive v0.1.0 | tar x -C SOURCE && unshare -ru bash make.sh SOURCE PYTHON 0.1.0
# writes store-0.1.0.tar.xz (the folder `s`) and store-0.1.0.txt (commands and what they print).
# PYTHON has the dependencies of that version. No name of a user's host is in it.
set -euo pipefail
source=$1 python=$2 version=$3 here=$(cd "$(dirname "$0")" && pwd)
hostname example
export PYTHONPATH=$source TZ=UTC HOME=/nonexistent
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
rmqctl() { "$python" -P -m rmqctl -S s "$@"; }

[ "$(rmqctl --version)" = "rmqctl $version" ]
rmqctl store init s --small --quiet > /dev/null
rmqctl topic create orders --queues 2 --quiet > /dev/null
seq -f 'order %g' 1 40 | rmqctl produce orders -k order --tag new --quiet > /dev/null
rmqctl consume orders -g billing -c 25 > /dev/null
rmqctl consume orders -g audit -e > /dev/null
rmqctl offset reset billing -t orders --to-offset 5 --reason again -y -q > /dev/null
printf 'bad\n' | rmqctl produce failing --quiet > /dev/null
rmqctl consume failing -g stuck -c 1 --exec false --max-reconsume-times 0 -q 2> /dev/null || [ $? = 1 ]
rmqctl dlq ack stuck --all -y -q > /dev/null
printf 'later\n' | rmqctl produce later --delay 2h --quiet > /dev/null
rmqctl topic create old -q > /dev/null
printf 'gone\n' | rmqctl produce old -q > /dev/null
rmqctl topic delete old -y --confirm old -q > /dev/null
rmqctl group create wide --retry-max-times 3 -q > /dev/null
rmqctl broker config set fileReservedTime 100 -y -q > /dev/null

# A writer that is killed: `abort` is there, and the shared state is open.
mkfifo lines
rmqctl produce orders --tag last -q < lines > /dev/null &
exec 3> lines
printf 'last %s\n' 1 2 3 >&3
until [ "$(rmqctl consume orders -e --tag last 2> /dev/null | wc -l)" = 3 ]; do :; done
kill -9 $!
wait 2> /dev/null || true
exec 3>&-

while read -r line; do
	echo "\$ rmqctl $line"
	eval "rmqctl $line"
done > "$here/store-$version.txt" << 'READ'
consume orders failing -e -o jsonl --columns topic,queue_id,queue_offset,store_timestamp,keys,tags,body
topic list --all -o jsonl --columns topic,messages
group list -o jsonl --columns group,retry,dlq
offset list -o jsonl --all --columns group,topic,queue_id,committed_offset,max_offset,lag
dlq browse stuck --all -o jsonl --columns queue_offset,handled
message query -t orders --key order -o jsonl --columns queue_id,queue_offset --limit 100
audit list -o jsonl --columns change_id,at_timestamp,command,group,topic,old_offset,new_offset,host
broker config get file_reserved_time_hours -o jsonl --columns setting,value
store fsck -q -o json --columns ok
READ
tar --sparse --owner=0 --group=0 --numeric-owner -cJf "$here/store-$version.tar.xz" s
