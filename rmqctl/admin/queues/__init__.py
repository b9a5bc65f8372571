"""Reading the queues of topics: ranges, and messages in the order in which they were stored.

selection    positions become ranges of queues
cursor       one queue: fetched messages, and the position in them
merge        several queues: what can be taken now
in_order     the queues of topics, read as one
"""
