import com.alibaba.fastjson.JSONObject;

import org.apache.rocketmq.broker.BrokerController;
import org.apache.rocketmq.client.QueryResult;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.MQVersion;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageConst;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.common.namesrv.NamesrvConfig;
import org.apache.rocketmq.namesrv.NamesrvController;
import org.apache.rocketmq.remoting.netty.NettyClientConfig;
import org.apache.rocketmq.remoting.netty.NettyServerConfig;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/** A name server, a broker on a given store folder, and clients of them, in one JVM. */
final class Cluster {
    private static final long COMMIT_LIMIT_NANOS = 10_000_000_000L;

    private BrokerController broker;
    private String namesrvAddress;
    private int clients;

    private Cluster() {
    }

    public static void main(String[] args) throws Exception {
        // As BrokerStartup does; without it the name server takes the broker for one of version 3.0
        // and does not read its topics.
        System.setProperty(RemotingCommand.REMOTING_VERSION_KEY,
            Integer.toString(MQVersion.CURRENT_VERSION));
        Cluster cluster = new Cluster();
        JsonLines.serve(cluster::answer);
    }

    private Object answer(String what, JSONObject request) throws Exception {
        switch (what) {
            case "start":
                return start(request.getString("root"), request.getJSONObject("settings"));
            case "produce":
                return produce(request);
            case "consume":
                return consume(request);
            case "topicStats":
                return topicStats(request.getString("topic"));
            case "consumeStats":
                return consumeStats(request.getString("group"));
            case "queryByKey":
                return queryByKey(request);
            case "stop":
                return stop();
            default:
                throw new IllegalArgumentException(what);
        }
    }

    // ---- servers

    private JSONObject start(String root, JSONObject settings) throws Exception {
        if (broker != null) {
            throw new IllegalStateException("a broker is running");
        }
        NettyServerConfig namesrvServer = new NettyServerConfig();
        namesrvServer.setListenPort(freePort());
        namesrvAddress = "127.0.0.1:" + namesrvServer.getListenPort();
        NamesrvController namesrv =
            new NamesrvController(new NamesrvConfig(), namesrvServer);
        namesrv.initialize();
        namesrv.start();

        Settings config = new Settings(root, settings);
        config.broker.setNamesrvAddr(namesrvAddress);
        config.broker.setBrokerIP1("127.0.0.1");
        config.store.setHaListenPort(freePort());
        config.server.setListenPort(freePort());
        BrokerController starting = new BrokerController(
            config.broker, config.server, new NettyClientConfig(), config.store);
        if (!starting.initialize()) {
            throw new IllegalStateException("the broker cannot load the store");
        }
        starting.start();                       // registers at the name server before it returns
        broker = starting;

        JSONObject row = new JSONObject(true);
        row.put("namesrv", namesrvAddress);
        row.put("broker", "127.0.0.1:" + config.server.getListenPort());
        row.put("maxPhyOffset", broker.getMessageStore().getMaxPhyOffset());
        return row;
    }

    private Object stop() {
        broker.shutdown();
        broker = null;
        return true;
    }

    /** A port that is free with the one two below it, the broker's "fast" port. */
    private static int freePort() throws Exception {
        for (;;) {
            try (ServerSocket socket = new ServerSocket(0);
                 ServerSocket fast = new ServerSocket(socket.getLocalPort() - 2)) {
                return fast.getLocalPort() + 2;
            } catch (java.net.BindException taken) {
                continue;
            }
        }
    }

    // ---- clients

    private String nextInstance() {
        clients += 1;
        return "client-" + clients;
    }

    private List<JSONObject> produce(JSONObject request) throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer("interop-producer");
        producer.setNamesrvAddr(namesrvAddress);
        producer.setInstanceName(nextInstance());
        producer.setVipChannelEnabled(false);
        producer.start();
        List<JSONObject> rows = new ArrayList<>();
        try {
            for (Object item : request.getJSONArray("messages")) {
                JSONObject given = (JSONObject) item;
                Message message = new Message(given.getString("topic"),
                    Base64.getDecoder().decode(given.getString("bodyBase64")));
                JSONObject wanted = given.getJSONObject("properties");
                if (wanted != null) {
                    wanted.forEach((name, value) ->
                        MessageAccessor.putProperty(message, name, (String) value));
                }
                Integer queueId = given.getInteger("queueId");
                SendResult result = queueId == null ? producer.send(message)
                    : producer.send(message, new MessageQueue(message.getTopic(),
                        broker.getBrokerConfig().getBrokerName(), queueId));
                JSONObject row = new JSONObject(true);
                row.put("status", String.valueOf(result.getSendStatus()));
                row.put("topic", message.getTopic());
                row.put("queueId", result.getMessageQueue().getQueueId());
                row.put("queueOffset", result.getQueueOffset());
                row.put("msgId", result.getMsgId());
                row.put("offsetMsgId", result.getOffsetMsgId());
                rows.add(row);
            }
        } finally {
            producer.shutdown();
        }
        return rows;
    }

    /**
     * What a new or known group is given until `count` messages came or the time is over.
     *
     * With `pullBatchSize` a pull asks for so many messages. With `failsAt` the listener throws at
     * the first delivery of a message whose body begins with this text. With `standsAt` the
     * group's progress in queue 0 does not come further than to this offset.
     */
    @SuppressWarnings("deprecation")            // persistConsumerOffset has no other way
    private List<JSONObject> consume(JSONObject request) throws Exception {
        BlockingQueue<MessageExt> received = new LinkedBlockingQueue<>();
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(request.getString("group"));
        consumer.setNamesrvAddr(namesrvAddress);
        consumer.setInstanceName(nextInstance());
        consumer.setVipChannelEnabled(false);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(request.getString("topic"), request.getString("expression"));
        if (request.containsKey("pullBatchSize")) {
            consumer.setPullBatchSize(request.getIntValue("pullBatchSize"));
        }
        String failsAt = request.getString("failsAt");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            received.addAll(messages);
            for (MessageExt message : messages) {
                if (failsAt != null && message.getReconsumeTimes() == 0
                    && new String(message.getBody(), StandardCharsets.UTF_8).startsWith(failsAt)) {
                    throw new IllegalStateException("the listener fails at " + failsAt);
                }
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        int count = request.getIntValue("count");
        long deadline = System.nanoTime()
            + TimeUnit.MILLISECONDS.toNanos(request.getLongValue("timeoutMs"));
        consumer.setAwaitTerminationMillisWhenShutdown(5000);
        List<MessageExt> messages = new ArrayList<>();
        consumer.start();
        try {
            while (messages.size() < count) {
                MessageExt next =
                    received.poll(deadline - System.nanoTime(), TimeUnit.NANOSECONDS);
                if (next == null) {
                    break;
                }
                messages.add(next);
            }
            // Now: what a shutdown sends is lost if its connection is closed before it is out.
            for (MessageExt message : passed(messages, request)) {
                awaitCommitted(message, request.getString("group"),
                    consumer.getDefaultMQPushConsumerImpl()::persistConsumerOffset);
            }
        } finally {
            consumer.shutdown();
        }
        List<MessageExt> late = new ArrayList<>();
        received.drainTo(late);
        for (MessageExt message : passed(late, request)) {
            awaitCommitted(message, request.getString("group"), () -> { });
        }
        messages.addAll(late);
        List<JSONObject> rows = new ArrayList<>();
        for (MessageExt message : messages) {
            JSONObject row = Rows.ofMessage(message);
            row.put("msgId", message.getMsgId());
            rows.add(row);
        }
        return rows;
    }

    /** Messages past which the group's progress is expected to come. */
    private static List<MessageExt> passed(List<MessageExt> messages, JSONObject request) {
        List<MessageExt> passed = new ArrayList<>(messages);
        if (request.containsKey("standsAt")) {
            long stands = request.getLongValue("standsAt");
            passed.removeIf(message ->
                message.getQueueId() == 0 && message.getQueueOffset() >= stands);
        }
        return passed;
    }

    private void awaitCommitted(MessageExt message, String group, Runnable persist) {
        long deadline = System.nanoTime() + COMMIT_LIMIT_NANOS;
        // A retry says the topic that it was read from first, but lies in another one.
        boolean retry = message.getReconsumeTimes() > 0
            || message.getProperty(MessageConst.PROPERTY_RETRY_TOPIC) != null;
        while (!retry && broker.getConsumerOffsetManager().queryOffset(
            group, message.getTopic(), message.getQueueId()) <= message.getQueueOffset()) {
            if (System.nanoTime() > deadline) {
                throw new IllegalStateException("the consumer's offsets do not reach the broker");
            }
            persist.run();
            LockSupport.parkNanos(10_000_000);
        }
    }

    private DefaultMQAdminExt admin() throws Exception {
        DefaultMQAdminExt admin = new DefaultMQAdminExt(5000L);
        admin.setNamesrvAddr(namesrvAddress);
        admin.setInstanceName(nextInstance());
        admin.setVipChannelEnabled(false);
        admin.start();
        return admin;
    }

    private List<JSONObject> topicStats(String topic) throws Exception {
        List<JSONObject> rows = new ArrayList<>();
        DefaultMQAdminExt admin = admin();
        try {
            admin.examineTopicStats(topic).getOffsetTable().forEach((queue, offsets) -> {
                JSONObject row = queueRow(queue);
                row.put("minOffset", offsets.getMinOffset());
                row.put("maxOffset", offsets.getMaxOffset());
                rows.add(row);
            });
        } finally {
            admin.shutdown();
        }
        rows.sort(Comparator.comparing(row -> row.getIntValue("queueId")));
        return rows;
    }

    private List<JSONObject> consumeStats(String group) throws Exception {
        List<JSONObject> rows = new ArrayList<>();
        DefaultMQAdminExt admin = admin();
        try {
            admin.examineConsumeStats(group).getOffsetTable().forEach((queue, offsets) -> {
                JSONObject row = queueRow(queue);
                row.put("brokerOffset", offsets.getBrokerOffset());
                row.put("consumerOffset", offsets.getConsumerOffset());
                row.put("diff", offsets.getBrokerOffset() - offsets.getConsumerOffset());
                row.put("lastTimestamp", offsets.getLastTimestamp());
                rows.add(row);
            });
        } finally {
            admin.shutdown();
        }
        rows.sort(Comparator.comparing((JSONObject row) -> row.getString("topic"))
            .thenComparing(row -> row.getIntValue("queueId")));
        return rows;
    }

    private static JSONObject queueRow(MessageQueue queue) {
        JSONObject row = new JSONObject(true);
        row.put("topic", queue.getTopic());
        row.put("brokerName", queue.getBrokerName());
        row.put("queueId", queue.getQueueId());
        return row;
    }

    private List<JSONObject> queryByKey(JSONObject request) throws Exception {
        List<JSONObject> rows = new ArrayList<>();
        DefaultMQAdminExt admin = admin();
        try {
            QueryResult result = admin.queryMessage(request.getString("topic"),
                request.getString("key"), request.getIntValue("maxNum"),
                request.getLongValue("begin"), request.getLongValue("end"));
            for (MessageExt message : result.getMessageList()) {
                rows.add(Rows.ofMessage(message));
            }
        } finally {
            admin.shutdown();
        }
        return rows;
    }
}
