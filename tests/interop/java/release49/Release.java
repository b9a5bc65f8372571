import com.alibaba.fastjson.JSONObject;

import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.store.ConsumeQueue;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.MessageExtBrokerInner;
import org.apache.rocketmq.store.PutMessageResult;
import org.apache.rocketmq.store.SelectMappedBufferResult;
import org.apache.rocketmq.store.config.BrokerRole;
import org.apache.rocketmq.store.config.MessageStoreConfig;
import org.apache.rocketmq.store.stats.BrokerStatsManager;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** What differs between the releases' classes: RocketMQ 4.9. */
final class Release {
    private Release() {
    }

    /** A store that delivers no delayed messages: what is asked is the store as it stands. */
    static DefaultMessageStore store(MessageStoreConfig config, BrokerConfig broker)
        throws Exception {
        BrokerStatsManager stats = new BrokerStatsManager(broker.getBrokerClusterName(), false);
        return new DefaultMessageStore(config, stats,
            (topic, queueId, offset, tagsCode, time, bitMap, properties) -> { }, broker) {
            @Override
            public void handleScheduleMessageService(BrokerRole role) {
            }
        };
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
        for (Map<Integer, ConsumeQueue> queues : store.getConsumeQueueTable().values()) {
            for (ConsumeQueue queue : queues.values()) {
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
        SelectMappedBufferResult found =
            store.findConsumeQueue(topic, queueId).getIndexBuffer(offset);
        if (found == null) {
            return null;
        }
        try {
            ByteBuffer unit = found.getByteBuffer();
            return new long[] {unit.getLong(), unit.getInt(), unit.getLong()};
        } finally {
            found.release();
        }
    }

    static void offsetByTime(DefaultMessageStore store, String topic, int queueId, long time,
        JSONObject row) {
        row.put("offset", store.getOffsetInQueueByTime(topic, queueId, time));
    }
}
