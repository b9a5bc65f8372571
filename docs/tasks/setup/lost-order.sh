# A store with nine orders, one of which a group gave up; it was sent again, and bought this time.
set -eu
rmqctl store init ./store --small --quiet > broker.conf
rmqctl topic create orders --queues 1 --quiet > /dev/null
for number in 1 2 3 4 5 6 7 8 9; do
    town=$(echo 'Ulm Bonn Kiel Zork Jena' | cut -d ' ' -f $((number % 5 + 1)))
    mail=$(echo 'ann bob cyd' | cut -d ' ' -f $((number % 3 + 1)))@example.org
    echo "{\"order\": $number, \"sum\": $((number * 30)), \"to\": \"$town\", \"mail\": \"$mail\"}" |
        rmqctl produce orders -k "order-$number" --tag "$([ $number -gt 6 ] && echo paid || echo new)" \
            -H "region=$([ $town = Zork ] && echo none || echo north)" --quiet
done > /dev/null
cat > ship <<'SHIP'
#!/bin/sh
case $(cat) in *Zork*) echo "no carrier goes to Zork" >&2; exit 4 ;; esac
SHIP
chmod +x ship
rmqctl consume orders -g shipping --from-where first -c 6 --exec ./ship --delay-level -1 \
    --quiet > /dev/null 2>&1 || [ $? -eq 8 ]  # some failed, as they shall
rmqctl dlq redrive shipping --all --yes --quiet > /dev/null 2>&1
export TZ=UTC
