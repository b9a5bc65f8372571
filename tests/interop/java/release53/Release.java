import com.alibaba.fastjson.JSONObject;

import org.apache.rocketmq.common.BoundaryType;
import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageExtBrokerInner;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.PutMessageResult;
import org.apache.rocketmq.store.config.MessageStoreConfig;
import org.apache.rocketmq.store.queue.ConsumeQueueInterface;
import org.apache.rocketmq.store.queue.CqUnit;
import org.apache.rocketmq.store.stats.BrokerStatsManager;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** What differs between the releases' classes: RocketMQ 5.3. */
final class Release {
    private Release() {
    }

    /** 5.3 delivers delayed messages in its broker, never in the store. */
    static DefaultMessageStore store(MessageStoreConfig config, BrokerConfig broker)
        throws Exception {
        BrokerStatsManager stats = new BrokerStatsManager(broker.getBrokerClusterName(), false);
        return new DefaultMessageStore(config, stats,
            (topic, queueId, offset, tagsCode, time, bitMap, properties) -> { }, broker,
            new ConcurrentHashMap<>());
    }

    static MessageExt newMessage() {
        return new MessageExtBrokerInner();
    }

    static PutMessageResult put(DefaultMessageStore store, MessageExt message) {
        MessageExtBrokerInner inner = (MessageExtBrokerInner) message;
        inner.setPropertiesString(MessageDecoder.messageProperties2String(inner.getProperties()));
        return store.putMessage(inner);
    }

    /** The queues Java knows, sorted by nothing. */
    static List<JSONObject> queues(DefaultMessageStore store) {
        List<JSONObject> rows = new ArrayList<>();
        for (Map<Integer, ConsumeQueueInterface> queues : store.getConsumeQueueTable().values()) {
            for (ConsumeQueueInterface queue : queues.values()) {
                JSONObject row = new JSONObject(true);
                row.put("topic", queue.getTopic());
                row.put("queueId", queue.getQueueId());
                row.put("maxPhysicOffset", queue.getMaxPhysicOffset());
                row.put("minLogicOffset", queue.getMinLogicOffset());
                rows.add(row);
            }
        }
        return rows;
    }

    /** {commit log offset, size, tags code} of a unit; null if there is none. */
    static long[] unit(DefaultMessageStore store, String topic, int queueId, long offset) {
        CqUnit unit = store.findConsumeQueue(topic, queueId).get(offset);
        return unit == null ? null
            : new long[] {unit.getPos(), unit.getSize(), unit.getTagsCode()};
    }

    static void offsetByTime(DefaultMessageStore store, String topic, int queueId, long time,
        JSONObject row) {
        row.put("offset",
            store.getOffsetInQueueByTime(topic, queueId, time, BoundaryType.LOWER));
        row.put("offsetUpper",
            store.getOffsetInQueueByTime(topic, queueId, time, BoundaryType.UPPER));
    }
}
