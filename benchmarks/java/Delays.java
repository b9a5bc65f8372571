import com.alibaba.fastjson.JSONObject;

import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.MessageExtBrokerInner;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/** How fast RocketMQ's store delivers delayed messages that are all due. */
final class Delays {
    private static final long LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(5);

    private Delays() {
    }

    /**
     * Delivers messages of one level, which have waited for their time; gives the milliseconds from
     * the first delivery to the last, by the times at which they were stored.
     */
    static Object deliver(JSONObject request) throws Exception {
        int count = request.getIntValue("count");
        MessageExtBrokerInner[] sent = Bench.inners(count, request.getIntValue("size"));
        DefaultMessageStore store = Bench.startedStore(request.getString("root"), false);
        try {
            for (MessageExtBrokerInner message : sent) {
                MessageAccessor.setProperties(message,
                    MessageDecoder.string2messageProperties(message.getPropertiesString()));
                message.setDelayTimeLevel(request.getIntValue("level"));
                Bench.check(store.putMessage(message));
            }
            Thread.sleep(request.getLongValue("delayMs"));
            store.getScheduleMessageService().start();
            long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(Bench.PATIENCE_S);
            while (delivered(store) < count) {
                if (System.nanoTime() > deadline) {
                    throw new IllegalStateException(delivered(store) + " messages were delivered");
                }
                LockSupport.parkNanos(LOOK_NANOS);
            }
            long first = Long.MAX_VALUE;
            long last = 0;
            for (int queueId = 0; queueId < Bench.QUEUES; queueId++) {
                long end = store.getMaxOffsetInQueue(Bench.TOPIC, queueId);
                first = Math.min(first, store.getMessageStoreTimeStamp(Bench.TOPIC, queueId, 0));
                last = Math.max(last, store.getMessageStoreTimeStamp(Bench.TOPIC, queueId, end - 1));
            }
            return last - first;
        } finally {
            store.shutdown();
        }
    }

    private static long delivered(DefaultMessageStore store) {
        long sum = 0;
        for (int queueId = 0; queueId < Bench.QUEUES; queueId++) {
            sum += store.getMaxOffsetInQueue(Bench.TOPIC, queueId);
        }
        return sum;
    }
}
