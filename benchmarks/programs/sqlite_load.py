"""Peer of `rmqctl produce`: the lines of a file into a WAL SQLite table with one index."""

import sqlite3
import sys
from pathlib import Path

db = sqlite3.connect(sys.argv[1])
db.execute("pragma journal_mode = wal")
db.execute("pragma synchronous = normal")
db.execute("create table messages (id integer primary key, topic text not null, body text)")
db.execute("create index by_topic on messages (topic, id)")
with Path(sys.argv[2]).open() as lines, db:
    rows = (("lines", line.rstrip("\n")) for line in lines)
    db.executemany("insert into messages (topic, body) values (?, ?)", rows)
db.close()
