# A small store with a topic of four messages, and a file to send.
set -eu
rmqctl store init ./store --small --quiet > broker.conf
rmqctl topic create access --queues 1 --quiet > /dev/null
printf '%s\n' 'GET /' 'GET /cart' 'POST /order' 'GET /cart' | rmqctl produce access --quiet
printf '%s\n' 'a-1,PUT /item' 'a-2,GET /item' > more.csv
