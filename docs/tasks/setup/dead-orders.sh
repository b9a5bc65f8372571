# A store with a group that gave up five of its messages: three for one reason, two for another.
set -eu
rmqctl store init ./store --small --quiet > broker.conf
rmqctl topic create orders --queues 1 --quiet > /dev/null
printf '%s\n' '{"order": 1}' '{"order": "two"}' '{"order": 3}' '{"order": "four"}' '{"order": 5}' \
    '{"order": "six"}' '{"order": 7, "to": "Zork"}' '{"order": 8, "to": "Zork"}' |
    rmqctl produce orders --tag order --quiet
cat > ship <<'SHIP'
#!/bin/sh
body=$(cat)
case $body in
*Zork*) echo "no carrier goes to Zork" >&2; exit 4 ;;
*'": "'*) echo "order number ${body#*: } is not a number" >&2; exit 3 ;;
esac
echo "shipped $body"
SHIP
cat > mend <<'MEND'
#!/bin/sh
sed -e 's/"two"/2/' -e 's/"four"/4/' -e 's/"six"/6/'
MEND
chmod +x ship mend
rmqctl consume orders -g shipping --from-where first -c 8 --exec ./ship --delay-level -1 \
    --quiet > /dev/null 2>&1 || [ $? -eq 8 ]  # some failed, as they shall
