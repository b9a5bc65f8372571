"""The small files of a store: RocketMQ's ``config/*.json``, and rmqctl's own progress and journal.

RocketMQ's files are read as its brokers read them and written byte for byte as a 4.9 broker writes
them (storage.format.fastjson), with unknown members kept. What is rmqctl's own lies in
``<store>/rmqctl/``. Nothing here reads a clock: times are parameters, in ms since the epoch.
"""
