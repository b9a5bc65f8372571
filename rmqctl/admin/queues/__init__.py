"""Reading the queues of topics: ranges, and messages in the order in which they were stored.

selection    positions become ranges of queues
cursor       one queue: fetched messages, and the position in them
merge        several queues: what can be taken now
in_order     the queues of topics, read as one
left_by_tags messages of some tags that a read left out, as they are damaged
read_ahead   the next messages of a queue, fetched by another thread
topic_queues the queues of a topic that have or had messages
"""
