"""mqadmin's commands for brokers, clusters, name servers, access and export."""

from collections.abc import Mapping
from typing import Final

from .given import Lines, MqadminOptions, Old, line

_WHERE: Final = "b:brokerAddr= c:clusterName="
_NAME_SERVER: Final = "there is no name server: the folder of the store is the address"
_ONE_BROKER: Final = "a store is one broker without a cluster; see 'store info' and 'broker status'"
_ACCESS: Final = "there is no access control: the permissions of the folder decide"


def _set_config(given: MqadminOptions) -> Lines:
    return line("broker config set", (), given["k"], given["v"])


def _metadata(given: MqadminOptions) -> Lines:
    if given.true("g") and not given.true("t"):
        return line("group describe", ["-o", "json"])
    return line("topic describe", ["-o", "json"])


def _clean(_: MqadminOptions) -> Lines:
    return line("store clean", [])


BROKERS: Final[Mapping[str, Old]] = {
    "brokerStatus": Old(_WHERE, lambda given: line("broker status")),
    "getBrokerConfig": Old(_WHERE, lambda given: line("broker config get")),
    "updateBrokerConfig": Old(f"{_WHERE} k:key=* v:value=*", _set_config),
    "cleanExpiredCQ": Old("b:brokerAddr= c:cluster=", _clean),
    "deleteExpiredCommitLog": Old("b:brokerAddr= c:cluster=", _clean),
    "cleanUnusedTopic": Old(
        "b:brokerAddr= c:cluster=", "queues are deleted together with their topic by 'topic delete'"
    ),
    "clusterList": Old("m:moreStats i:interval=", _ONE_BROKER),
    "statsAll": Old(
        "a:activeTopic t:topic=",
        lambda given: line("topic stats", (), *([given["t"]] if given.get("t") else [])),
        "a",
    ),
    "getNamesrvConfig": Old("", _NAME_SERVER),
    "updateNamesrvConfig": Old("k:key=* v:value=*", _NAME_SERVER),
    "updateKvConfig": Old("s:namespace=* k:key=* v:value=*", _NAME_SERVER),
    "deleteKvConfig": Old("s:namespace=* k:key=*", _NAME_SERVER),
    "wipeWritePerm": Old(
        "b:brokerName=*", f"{_NAME_SERVER}; 'topic alter --perm 4' makes a topic read-only"
    ),
    "addWritePerm": Old(
        "b:brokerName=*", f"{_NAME_SERVER}; 'topic alter --perm 6' makes a topic writable"
    ),
    "updateAclConfig": Old(
        f"{_WHERE} a:accessKey=* s:secretKey=* w:whiteRemoteAddress= i:defaultTopicPerm= "
        "u:defaultGroupPerm= t:topicPerms= g:groupPerms= m:admin=",
        _ACCESS,
    ),
    "deleteAclConfig": Old(f"{_WHERE} a:accessKey=*", _ACCESS),
    "updateGlobalWhiteAddr": Old(
        f"{_WHERE} g:globalWhiteRemoteAddresses=* p:aclFileFullPath=", _ACCESS
    ),
    "clusterAclConfigVersion": Old(_WHERE, _ACCESS),
    "exportMetadata": Old(
        "c:clusterName= b:brokerAddr= f:filePath= t:topic g:subscriptionGroup s:specialTopic",
        _metadata,
        "fs",
    ),
    "exportConfigs": Old(
        "c:clusterName= f:filePath=", lambda given: line("broker config get", ["-o", "json"]), "f"
    ),
    "exportMetrics": Old(
        "c:clusterName= f:filePath=", lambda given: line("topic stats", ["-o", "json"]), "f"
    ),
}
