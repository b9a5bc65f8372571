"""Peer of `rmqctl consume -e`: SELECTs the lines and prints them."""

import sqlite3
import sys

db = sqlite3.connect(sys.argv[1])
for (body,) in db.execute("select body from messages where topic = ? order by id", ("lines",)):
    print(body)
db.close()
