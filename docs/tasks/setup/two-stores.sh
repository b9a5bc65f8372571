# A shop's store and one for tests; a list of topics.
set -eu
rmqctl store init prod --small -q > /dev/null
rmqctl store init test --small -q > /dev/null
printf 'hello\nworld\n' | rmqctl -S prod produce orders -q
cat > topics.csv <<'LINES'
topic,queues,order
invoices,4,
payments,2,true
refunds,,
LINES
