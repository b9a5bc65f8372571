"""Speed of rmqctl, always beside a peer that does the same work in the same minute.

``python -m benchmarks`` (``make bench``); what is measured and why: benchmarks/README.md.
"""
