"""Queues of topics that topics.json does not name."""

import pytest

from storage.configs.topics import TopicConfig, topics_file
from storage.readonly import StoreView
from storage.store import MessageStore
from storage.tools.fsck import fsck
from tests.support.samples import SMALL, Sample, new_store, prepared


@pytest.mark.parametrize(
    ("topic", "fix"),
    [
        ("Orders", "rmqctl topic create Orders"),
        ("%RETRY%g", "rmqctl topic create %RETRY%g"),
        ("RMQ_SYS_TRANS_HALF_TOPIC", ""),
        ("\u4e3b\u9898", ""),
    ],
)
def test_the_remedy_is_one_that_is_not_refused(tmp_path, topic, fix):
    root = new_store(tmp_path / "s", SMALL)
    file = topics_file(root)
    table = file.read_for_change(0)
    table.put("Known", TopicConfig("Known"), 0)
    file.save(table)
    with MessageStore.open(root) as store:
        store.put(prepared((Sample("m", topic),)))
    with StoreView.open(root) as view:
        (finding,) = fsck(view).findings
    assert (finding.code, finding.fix) == ("TOPIC_UNKNOWN", fix)
