# A shop's store: five orders, of which the group billing has read three; a folder for backups.
set -eu
rmqctl store init shop --small -q > /dev/null
printf 'order %s\n' 1 2 3 4 5 | rmqctl -S shop produce orders -Q 0 -q
rmqctl -S shop consume orders -g billing --from-where first -c 3 -q > /dev/null
mkdir backup
