import com.alibaba.fastjson.JSONArray;
import com.alibaba.fastjson.JSONObject;

import org.apache.rocketmq.broker.BrokerStartup;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.common.MixAll;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageClientIDSetter;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageExtBatch;
import org.apache.rocketmq.common.topic.TopicValidator;
import org.apache.rocketmq.namesrv.NamesrvStartup;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.GetMessageResult;
import org.apache.rocketmq.store.MessageExtBrokerInner;
import org.apache.rocketmq.store.PutMessageResult;
import org.apache.rocketmq.store.PutMessageStatus;
import org.apache.rocketmq.store.QueryMessageResult;
import org.apache.rocketmq.store.config.BrokerRole;
import org.apache.rocketmq.store.config.FlushDiskType;
import org.apache.rocketmq.store.config.MessageStoreConfig;
import org.apache.rocketmq.store.stats.BrokerStatsManager;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;

/**
 * RocketMQ's side of the benchmarks: its store alone, or a client of its broker.
 *
 * <pre>
 *   Bench serve                 answers JSON lines: a store's work, or a client's
 *   Bench namesrv|broker ...    RocketMQ's own start-up, ended when the input ends
 *   Bench first NAMESRV TOPIC   sends one message from a cold JVM and prints when it is acknowledged
 * </pre>
 */
final class Bench {
    static final String TOPIC = "benchmark";
    private static final String TAG = "TagA";
    static final int QUEUES = 4;
    private static final int TURNS = 100;
    static final long PATIENCE_S = 300;
    private static final InetSocketAddress HOST = new InetSocketAddress("127.0.0.1", 10911);

    private DefaultMessageStore store;
    private DefaultMQProducer producer;
    private DefaultMQPushConsumer listener;
    private long[] latencies;
    private AtomicInteger heard;
    private CountDownLatch enough;
    private int clients;

    private Bench() {
    }

    public static void main(String[] args) throws Exception {
        String[] rest = Arrays.copyOfRange(args, 1, args.length);
        switch (args[0]) {
            case "serve":
                Bench bench = new Bench();
                JsonLines.serve(bench::answer);
                break;
            case "namesrv":
                endWithInput();
                NamesrvStartup.main(rest);
                break;
            case "broker":
                endWithInput();
                BrokerStartup.main(rest);
                break;
            case "first":
                first(rest[0], rest[1]);
                break;
            default:
                throw new IllegalArgumentException(args[0]);
        }
    }

    private static void endWithInput() {
        Thread watch = new Thread(() -> {
            try {
                while (System.in.read() >= 0) {
                    continue;
                }
            } catch (IOException closed) {
                closed.printStackTrace();
            }
            Runtime.getRuntime().halt(0);
        }, "parent-watch");
        watch.setDaemon(true);
        watch.start();
    }

    private Object answer(String what, JSONObject request) throws Exception {
        switch (what) {
            case "put":
                return put(request);
            case "putBatches":
                return putBatches(request);
            case "deliver":
                return Delays.deliver(request);
            case "open":
                return open(request);
            case "close":
                return close();
            case "pull":
                return pull(request.getIntValue("count"));
            case "query":
                return query(request.getJSONArray("keys"));
            case "offsetByTime":
                return offsetByTime(request.getJSONArray("times"));
            case "connect":
                return connect(request.getString("namesrv"));
            case "send":
                return send(request);
            case "sendBatches":
                return sendBatches(request);
            case "drain":
                return drain(request);
            case "listen":
                return listen(request);
            case "heard":
                return heard();
            case "pace":
                return pace(request);
            default:
                throw new IllegalArgumentException(what);
        }
    }

    // ---- messages: the same as the other contestants'

    private static byte[][] bodies(int size) {
        byte[][] made = new byte[TURNS][];
        for (int turn = 0; turn < TURNS; turn++) {
            made[turn] = new byte[size];
            for (int i = 0; i < size; i++) {
                made[turn][i] = (byte) ((i + turn) % size % 251);
            }
        }
        return made;
    }

    private static String properties(String uniqueId, String key) {
        return "UNIQ_KEY\001" + uniqueId + "\002WAIT\001true\002TAGS\001" + TAG + "\002KEYS\001"
            + key + "\002";
    }

    static MessageExtBrokerInner[] inners(int count, int size) {
        byte[][] bodies = bodies(size);
        MessageExtBrokerInner[] made = new MessageExtBrokerInner[count];
        long now = System.currentTimeMillis();
        for (int number = 0; number < count; number++) {
            MessageExtBrokerInner message = new MessageExtBrokerInner();
            message.setTopic(TOPIC);
            message.setQueueId(number % QUEUES);
            message.setBody(bodies[number % TURNS]);
            message.setBornTimestamp(now);
            message.setBornHost(HOST);
            message.setStoreHost(HOST);
            message.setPropertiesString(
                properties(MessageClientIDSetter.createUniqID(), "order-" + number));
            message.setTagsCode(TAG.hashCode());
            made[number] = message;
        }
        return made;
    }

    // ---- the store alone

    private static DefaultMessageStore newStore(String root, boolean sync) throws Exception {
        MessageStoreConfig config = new MessageStoreConfig();
        config.setStorePathRootDir(root);
        config.setStorePathCommitLog(root + "/commitlog");
        config.setHaListenPort(0);
        config.setFlushDiskType(sync ? FlushDiskType.SYNC_FLUSH : FlushDiskType.ASYNC_FLUSH);
        BrokerConfig broker = new BrokerConfig();
        BrokerStatsManager stats = new BrokerStatsManager(broker.getBrokerClusterName(), false);
        return new DefaultMessageStore(config, stats,
            (topic, queueId, offset, tagsCode, time, bitMap, properties) -> { }, broker) {
            @Override
            public void handleScheduleMessageService(BrokerRole role) {
            }
        };
    }

    static DefaultMessageStore startedStore(String root, boolean sync) throws Exception {
        DefaultMessageStore starting = newStore(root, sync);
        if (!starting.load()) {
            throw new IllegalStateException("load() of " + root + " gave false");
        }
        starting.start();
        return starting;
    }

    static void check(PutMessageResult result) {
        if (result.getPutMessageStatus() != PutMessageStatus.PUT_OK) {
            throw new IllegalStateException(String.valueOf(result.getPutMessageStatus()));
        }
    }

    private static void awaitDispatch(DefaultMessageStore of) {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE_S);
        while (of.dispatchBehindBytes() > 0) {
            if (System.nanoTime() > deadline) {
                throw new IllegalStateException("dispatch does not end");
            }
            LockSupport.parkNanos(100_000);
        }
    }

    /** Seconds until all were acknowledged, and until queues and index had them too. */
    private static JSONObject seconds(long start, long end, DefaultMessageStore of) {
        awaitDispatch(of);
        JSONObject row = new JSONObject(true);
        row.put("seconds", (end - start) / 1e9);
        row.put("dispatched", (System.nanoTime() - start) / 1e9);
        long[] ends = new long[QUEUES];
        for (int queueId = 0; queueId < QUEUES; queueId++) {
            ends[queueId] = of.getMaxOffsetInQueue(TOPIC, queueId);
        }
        row.put("ends", ends);
        return row;
    }

    private static JSONObject put(JSONObject request) throws Exception {
        MessageExtBrokerInner[] sent = inners(request.getIntValue("count") + 1,
            request.getIntValue("size"));
        int threads = Math.max(1, request.getIntValue("threads"));
        DefaultMessageStore into =
            startedStore(request.getString("root"), request.getBooleanValue("sync"));
        try {
            check(into.putMessage(sent[sent.length - 1]));
            long[] took = new long[sent.length - 1];
            Thread[] writers = new Thread[threads];
            AtomicLong failed = new AtomicLong();
            long start = System.nanoTime();
            if (threads == 1) {
                putEach(into, sent, took, 0, 1);
            } else {
                for (int number = 0; number < threads; number++) {
                    int first = number;
                    writers[number] = new Thread(() -> {
                        try {
                            putEach(into, sent, took, first, threads);
                        } catch (RuntimeException failure) {
                            failure.printStackTrace();
                            failed.incrementAndGet();
                        }
                    });
                    writers[number].start();
                }
                for (Thread writer : writers) {
                    writer.join();
                }
            }
            JSONObject row = seconds(start, System.nanoTime(), into);
            if (failed.get() > 0) {
                throw new IllegalStateException("a thread failed");
            }
            Arrays.sort(took);
            row.put("p50", took[took.length / 2]);
            return row;
        } finally {
            into.shutdown();
        }
    }

    private static void putEach(DefaultMessageStore into, MessageExtBrokerInner[] sent,
        long[] took, int first, int step) {
        long last = System.nanoTime();
        for (int number = first; number < took.length; number += step) {
            check(into.putMessage(sent[number]));
            long now = System.nanoTime();
            took[number] = now - last;
            last = now;
        }
    }

    /** Batches of one queue each: RocketMQ has no others. Packing them is a client's work: timed apart. */
    private static JSONObject putBatches(JSONObject request) throws Exception {
        int batches = request.getIntValue("batches");
        int size = request.getIntValue("batch");
        byte[][] bodies = bodies(request.getIntValue("size"));
        DefaultMessageStore into = startedStore(request.getString("root"), false);
        long packing = 0;
        long putting = 0;
        try {
            long start = System.nanoTime();
            for (int number = -1; number < batches; number++) {
                if (number == 0) {
                    packing = 0;
                    putting = 0;
                    start = System.nanoTime();
                }
                long before = System.nanoTime();
                List<Message> messages = new ArrayList<>(size);
                for (int i = 0; i < size; i++) {
                    Message message = new Message(TOPIC, TAG, "order-" + (number * size + i),
                        bodies[i % TURNS]);
                    MessageClientIDSetter.setUniqID(message);
                    messages.add(message);
                }
                MessageExtBatch batch = new MessageExtBatch();
                batch.setTopic(TOPIC);
                batch.setQueueId(Math.floorMod(number, QUEUES));
                batch.setBody(MessageDecoder.encodeMessages(messages));
                batch.setBornTimestamp(System.currentTimeMillis());
                batch.setBornHost(HOST);
                batch.setStoreHost(HOST);
                long packed = System.nanoTime();
                check(into.putMessages(batch));
                packing += packed - before;
                putting += System.nanoTime() - packed;
            }
            JSONObject row = seconds(start, System.nanoTime(), into);
            row.put("packing", packing / 1e9);
            row.put("putting", putting / 1e9);
            return row;
        } finally {
            into.shutdown();
        }
    }

    /** Opens a folder; gives the time of its recovery. */
    private Object open(JSONObject request) throws Exception {
        DefaultMessageStore opening = newStore(request.getString("root"), false);
        long start = System.nanoTime();
        if (!opening.load()) {
            throw new IllegalStateException("load() gave false");
        }
        double seconds = (System.nanoTime() - start) / 1e9;
        if (request.getBooleanValue("start")) {
            opening.start();
            awaitDispatch(opening);
        }
        store = opening;
        JSONObject row = new JSONObject(true);
        row.put("seconds", seconds);
        row.put("end", opening.getMaxPhyOffset());
        return row;
    }

    private Object close() {
        store.shutdown();
        store = null;
        return true;
    }

    private Object pull(int atOnce) {
        long start = System.nanoTime();
        long bytes = 0;
        long messages = 0;
        for (int queueId = 0; queueId < QUEUES; queueId++) {
            long offset = 0;
            for (;;) {
                GetMessageResult found =
                    store.getMessage("bench", TOPIC, queueId, offset, atOnce, null);
                try {
                    List<ByteBuffer> buffers = found.getMessageBufferList();
                    if (buffers.isEmpty()) {
                        break;
                    }
                    for (ByteBuffer buffer : buffers) {
                        // As clients do it: body copied, properties into a map; its CRC checked.
                        MessageExt message = MessageDecoder.decode(buffer);
                        bytes += message.getBody().length;
                        messages++;
                    }
                    offset = found.getNextBeginOffset();
                } finally {
                    found.release();
                }
            }
        }
        JSONObject row = new JSONObject(true);
        row.put("seconds", (System.nanoTime() - start) / 1e9);
        row.put("messages", messages);
        row.put("bytes", bytes);
        return row;
    }

    private Object query(JSONArray keys) {
        long[] took = new long[keys.size()];
        for (int number = 0; number < took.length; number++) {
            String key = keys.getString(number);
            long before = System.nanoTime();
            QueryMessageResult found =
                store.queryMessage(TOPIC, key, 32, 0, System.currentTimeMillis() + 3_600_000);
            int hits = found.getMessageBufferList().size();
            found.release();
            took[number] = System.nanoTime() - before;
            if (hits == 0) {
                throw new IllegalStateException("nothing found for " + key);
            }
        }
        return middle(took);
    }

    private Object offsetByTime(JSONArray times) {
        long[] took = new long[times.size()];
        long sum = 0;
        for (int number = 0; number < took.length; number++) {
            long time = times.getLongValue(number);
            long before = System.nanoTime();
            sum += store.getOffsetInQueueByTime(TOPIC, number % QUEUES, time);
            took[number] = System.nanoTime() - before;
        }
        JSONObject row = middle(took);
        row.put("sum", sum);
        return row;
    }

    private static JSONObject middle(long[] took) {
        Arrays.sort(took);
        JSONObject row = new JSONObject(true);
        row.put("p50", took[took.length / 2]);
        row.put("p99", took[took.length * 99 / 100]);
        return row;
    }

    // ---- a client of a broker

    private static DefaultMQProducer startedProducer(String namesrv, String name)
        throws Exception {
        DefaultMQProducer starting = new DefaultMQProducer("bench-producer");
        starting.setNamesrvAddr(namesrv);
        starting.setInstanceName(name);
        starting.setVipChannelEnabled(false);
        starting.setSendMsgTimeout(30_000);
        starting.start();
        return starting;
    }

    private Object connect(String namesrv) throws Exception {
        producer = startedProducer(namesrv, "bench");
        return true;
    }

    private static void first(String namesrv, String topic) throws Exception {
        DefaultMQProducer sending = startedProducer(namesrv, "first");
        SendStatus status = sending.send(new Message(topic, new byte[100])).getSendStatus();
        System.out.println("acknowledged " + status);
        System.out.flush();
        Runtime.getRuntime().halt(status == SendStatus.SEND_OK ? 0 : 1);
    }

    private void check(SendStatus status) {
        if (status != SendStatus.SEND_OK) {
            throw new IllegalStateException(String.valueOf(status));
        }
    }

    private Object send(JSONObject request) throws Exception {
        String topic = request.getString("topic");
        byte[][] bodies = bodies(request.getIntValue("size"));
        int count = request.getIntValue("count");
        long start = System.nanoTime();
        for (int number = 0; number < count; number++) {
            check(producer.send(
                new Message(topic, TAG, "order-" + number, bodies[number % TURNS])).getSendStatus());
        }
        return (System.nanoTime() - start) / 1e9;
    }

    private Object sendBatches(JSONObject request) throws Exception {
        String topic = request.getString("topic");
        byte[][] bodies = bodies(request.getIntValue("size"));
        int batches = request.getIntValue("batches");
        int size = request.getIntValue("batch");
        long start = System.nanoTime();
        for (int number = 0; number < batches; number++) {
            List<Message> messages = new ArrayList<>(size);
            for (int i = 0; i < size; i++) {
                messages.add(
                    new Message(topic, TAG, "order-" + (number * size + i), bodies[i % TURNS]));
            }
            check(producer.send(messages).getSendStatus());
        }
        return (System.nanoTime() - start) / 1e9;
    }

    private DefaultMQPushConsumer newConsumer(JSONObject request, String topic)
        throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(request.getString("group"));
        clients += 1;
        consumer.setNamesrvAddr(request.getString("namesrv"));
        consumer.setInstanceName("consumer-" + clients);
        consumer.setVipChannelEnabled(false);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(topic, "*");
        return consumer;
    }

    /**
     * Makes a group's retry topic known to the name server, by a consumer without topics. A
     * consumer that does not find it when it starts takes it up with its next rebalance, in 20 s.
     */
    private void makeRetryTopic(JSONObject request) throws Exception {
        DefaultMQPushConsumer first = newConsumer(request, TopicValidator.RMQ_SYS_SELF_TEST_TOPIC);
        first.registerMessageListener((MessageListenerConcurrently) (messages, context) ->
            ConsumeConcurrentlyStatus.CONSUME_SUCCESS);
        first.start();
        try {
            long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE_S);
            while (!isKnown(MixAll.getRetryTopic(request.getString("group")))) {
                if (System.nanoTime() > deadline) {
                    throw new IllegalStateException("no retry topic");
                }
                LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(10));
            }
        } finally {
            first.shutdown();
        }
    }

    private boolean isKnown(String topic) {
        try {
            return !producer.fetchPublishMessageQueues(topic).isEmpty();
        } catch (MQClientException unknown) {
            return false;
        }
    }

    /**
     * A new group reads everything, with the defaults of a push consumer: the time from the first
     * message to the last success. With failOnce each fails when it comes first.
     */
    private Object drain(JSONObject request) throws Exception {
        boolean failOnce = request.getBooleanValue("failOnce");
        AtomicInteger left = new AtomicInteger(request.getIntValue("count"));
        AtomicLong began = new AtomicLong();
        CountDownLatch done = new CountDownLatch(1);
        if (failOnce) {
            makeRetryTopic(request);
        }
        DefaultMQPushConsumer consumer = newConsumer(request, request.getString("topic"));
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            began.compareAndSet(0, System.nanoTime());
            if (failOnce && messages.get(0).getReconsumeTimes() == 0) {
                context.setDelayLevelWhenNextConsume(1);
                return ConsumeConcurrentlyStatus.RECONSUME_LATER;
            }
            if (left.addAndGet(-messages.size()) <= 0) {
                done.countDown();
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        try {
            if (!done.await(PATIENCE_S, TimeUnit.SECONDS)) {
                throw new IllegalStateException(left + " messages did not come");
            }
            return (System.nanoTime() - began.get()) / 1e9;
        } finally {
            consumer.shutdown();
        }
    }

    /** Notes how old messages are: each body begins with the sender's time, in 20 digits. */
    private Object listen(JSONObject request) throws Exception {
        latencies = new long[request.getIntValue("count")];
        heard = new AtomicInteger();
        enough = new CountDownLatch(1);
        listener = newConsumer(request, request.getString("topic"));
        CountDownLatch ready = new CountDownLatch(1);
        listener.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            long now = System.nanoTime();
            for (MessageExt message : messages) {
                long sent = ByteBuffer.wrap(message.getBody()).getLong();
                int place = sent == 0 ? -1 : heard.getAndIncrement();
                if (place >= 0 && place < latencies.length) {
                    latencies[place] = now - sent;
                }
            }
            ready.countDown();
            if (heard.get() >= latencies.length) {
                enough.countDown();
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        listener.start();
        if (!ready.await(PATIENCE_S, TimeUnit.SECONDS)) {
            throw new IllegalStateException("nothing came");
        }
        return true;
    }

    private Object heard() throws Exception {
        if (!enough.await(PATIENCE_S, TimeUnit.SECONDS)) {
            throw new IllegalStateException("only " + heard + " messages came");
        }
        listener.shutdown();
        return latencies;
    }

    /** Sends messages that carry the time, one each so many milliseconds. */
    private Object pace(JSONObject request) throws Exception {
        String topic = request.getString("topic");
        long step = TimeUnit.MILLISECONDS.toNanos(request.getLongValue("everyMs"));
        boolean untimed = request.getBooleanValue("untimed");
        int count = request.getIntValue("count");
        byte[] body = new byte[request.getIntValue("size")];
        long start = System.nanoTime();
        for (int number = 0; number < count; number++) {
            long pause = start + number * step - System.nanoTime();
            if (pause > 0) {
                LockSupport.parkNanos(pause);
            }
            ByteBuffer.wrap(body).putLong(untimed ? 0 : System.nanoTime());
            check(producer.send(new Message(topic, body.clone())).getSendStatus());
        }
        return true;
    }
}
