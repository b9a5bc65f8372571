import com.alibaba.fastjson.JSONArray;
import com.alibaba.fastjson.JSONObject;

import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.store.AppendMessageResult;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.GetMessageResult;
import org.apache.rocketmq.store.PutMessageResult;
import org.apache.rocketmq.store.QueryMessageResult;
import org.apache.rocketmq.store.index.IndexService;
import org.apache.rocketmq.store.index.QueryOffsetResult;

import java.lang.reflect.Field;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.locks.LockSupport;

/**
 * Opens store folders with RocketMQ's own DefaultMessageStore and says what it finds in them.
 *
 * Rows have the names and the order of the manifests of tests/golden.
 */
final class StoreProbe {
    private static final long DISPATCH_LIMIT_NANOS = 30_000_000_000L;

    private DefaultMessageStore store;

    private StoreProbe() {
    }

    public static void main(String[] args) throws Exception {
        StoreProbe probe = new StoreProbe();
        JsonLines.serve(probe::answer);
    }

    private Object answer(String what, JSONObject request) throws Exception {
        switch (what) {
            case "open":
                return open(request.getString("root"), request.getJSONObject("settings"));
            case "dump":
                return dump();
            case "offsetByTime":
                return forEach(request, this::offsetByTime);
            case "queryByKey":
                return forEach(request, this::queryByKey);
            case "pulls":
                return forEach(request, this::pull);
            case "append":
                return append(request.getJSONArray("messages"));
            case "close":
                return close();
            default:
                throw new IllegalArgumentException(what);
        }
    }

    private JSONObject open(String root, JSONObject settings) throws Exception {
        if (store != null) {
            throw new IllegalStateException("a store is open");
        }
        Settings config = new Settings(root, settings);
        config.store.setHaListenPort(0);
        DefaultMessageStore opening = Release.store(config.store, config.broker);
        JSONObject row = new JSONObject(true);
        boolean loaded = opening.load();
        row.put("loaded", loaded);
        if (!loaded) {
            return row;
        }
        row.put("maxPhyOffsetAfterLoad", opening.getMaxPhyOffset());
        opening.start();
        store = opening;
        awaitDispatch();
        row.put("minPhyOffset", store.getMinPhyOffset());
        row.put("maxPhyOffset", store.getMaxPhyOffset());
        return row;
    }

    private Object close() {
        store.shutdown();
        store = null;
        return true;
    }

    private void awaitDispatch() {
        long deadline = System.nanoTime() + DISPATCH_LIMIT_NANOS;
        while (store.dispatchBehindBytes() > 0) {
            if (System.nanoTime() > deadline) {
                throw new IllegalStateException("dispatch does not end");
            }
            LockSupport.parkNanos(1_000_000);
        }
    }

    // ---- what is in the store

    private JSONObject dump() throws Exception {
        List<JSONObject> messages = new ArrayList<>();
        List<JSONObject> unreadable = new ArrayList<>();
        List<JSONObject> foreign = new ArrayList<>();
        List<JSONObject> queues = new ArrayList<>();
        List<JSONObject> known = Release.queues(store);
        known.sort(Comparator.comparing((JSONObject row) -> row.getString("topic"))
            .thenComparing(row -> row.getIntValue("queueId")));
        for (JSONObject queue : known) {
            String topic = queue.getString("topic");
            int queueId = queue.getIntValue("queueId");
            long min = store.getMinOffsetInQueue(topic, queueId);
            long max = store.getMaxOffsetInQueue(topic, queueId);
            queue.put("minOffset", min);
            queue.put("maxOffset", max);
            queue.put("earliestMessageTime", store.getEarliestMessageTime(topic, queueId));
            queue.put("messageTotal", store.getMessageTotalInQueue(topic, queueId));
            queues.add(queue);
            for (long offset = min; offset < max; offset++) {
                read(topic, queueId, offset, messages, unreadable, foreign);
            }
        }
        JSONObject row = new JSONObject(true);
        row.put("minPhyOffset", store.getMinPhyOffset());
        row.put("maxPhyOffset", store.getMaxPhyOffset());
        row.put("queues", queues);
        row.put("messages", messages);
        row.put("unreadable", unreadable);
        row.put("foreign", foreign);
        return row;
    }

    private void read(String topic, int queueId, long offset, List<JSONObject> messages,
        List<JSONObject> unreadable, List<JSONObject> foreign) throws Exception {
        long[] unit = Release.unit(store, topic, queueId, offset);
        GetMessageResult result = store.getMessage("probe", topic, queueId, offset, 1, null);
        try {
            List<ByteBuffer> records = result.getMessageBufferList();
            JSONObject row = records.isEmpty() ? null : Rows.ofRecord(records.get(0));
            if (row == null) {
                row = new JSONObject(true);
                row.put("topic", topic);
                row.put("queueId", queueId);
                row.put("queueOffset", offset);
                row.put("unit", unit);
                row.put("status", String.valueOf(result.getStatus()));
                row.put("nextBeginOffset", result.getNextBeginOffset());
                unreadable.add(row);
                return;
            }
            row.put("tagsCode", unit == null ? null : unit[2]);
            boolean own = topic.equals(row.getString("topic"))
                && queueId == row.getIntValue("queueId")
                && offset == row.getLongValue("queueOffset");
            if (!own) {
                row.put("inTopic", topic);
                row.put("inQueueId", queueId);
                row.put("inQueueOffset", offset);
                row.put("unit", unit);
            }
            (own ? messages : foreign).add(row);
        } finally {
            result.release();
        }
    }

    // ---- questions

    private interface Question {
        void answer(JSONObject row) throws Exception;
    }

    private static List<JSONObject> forEach(JSONObject request, Question question) {
        List<JSONObject> rows = new ArrayList<>();
        for (Object item : request.getJSONArray("questions")) {
            JSONObject row = (JSONObject) item;
            try {
                question.answer(row);
            } catch (Exception failure) {
                row.put("error", String.valueOf(failure));
            }
            rows.add(row);
        }
        return rows;
    }

    private void offsetByTime(JSONObject row) {
        Release.offsetByTime(store, row.getString("topic"), row.getIntValue("queueId"),
            row.getLongValue("timestamp"), row);
    }

    private void queryByKey(JSONObject row) throws Exception {
        String topic = row.getString("topic");
        String key = row.getString("key");
        int maxNum = row.getIntValue("maxNum");
        long begin = row.getLongValue("begin");
        long end = row.getLongValue("end");
        List<Object> offsets = new ArrayList<>();
        QueryMessageResult result = store.queryMessage(topic, key, maxNum, begin, end);
        try {
            for (ByteBuffer record : result.getMessageBufferList()) {
                offsets.add(Rows.ofRecord(record).get("commitLogOffset"));
            }
            row.put("commitLogOffsets", offsets);
            row.put("indexLastUpdateTimestamp", result.getIndexLastUpdateTimestamp());
            row.put("indexLastUpdatePhyoffset", result.getIndexLastUpdatePhyoffset());
        } finally {
            result.release();
        }
        Field field = DefaultMessageStore.class.getDeclaredField("indexService");
        field.setAccessible(true);
        QueryOffsetResult raw = ((IndexService) field.get(store))
            .queryOffset(topic, key, maxNum, begin, end);
        row.put("indexPhyOffsets", raw.getPhyOffsets());
    }

    private void pull(JSONObject row) {
        GetMessageResult result = store.getMessage("probe", row.getString("topic"),
            row.getIntValue("queueId"), row.getLongValue("offset"),
            row.getIntValue("maxNums"), null);
        try {
            List<Object> offsets = new ArrayList<>();
            for (ByteBuffer record : result.getMessageBufferList()) {
                offsets.add(record.getLong(record.position() + 20));
            }
            row.put("status", String.valueOf(result.getStatus()));
            row.put("nextBeginOffset", result.getNextBeginOffset());
            row.put("minOffset", result.getMinOffset());
            row.put("maxOffset", result.getMaxOffset());
            row.put("bufferTotalSize", result.getBufferTotalSize());
            row.put("queueOffsets", offsets);
        } finally {
            result.release();
        }
    }

    // ---- writing

    private List<JSONObject> append(JSONArray messages) throws Exception {
        List<JSONObject> rows = new ArrayList<>();
        for (Object item : messages) {
            rows.add(put((JSONObject) item));
        }
        awaitDispatch();
        return rows;
    }

    private static InetSocketAddress host(JSONObject given, String name, String usual) {
        String host = given.containsKey(name) ? given.getString(name) : usual;
        int colon = host.lastIndexOf(':');
        return new InetSocketAddress(
            host.substring(0, colon), Integer.parseInt(host.substring(colon + 1)));
    }

    private JSONObject put(JSONObject given) throws Exception {
        MessageExt message = Release.newMessage();
        message.setTopic(given.getString("topic"));
        message.setQueueId(given.getIntValue("queueId"));
        message.setBody(Base64.getDecoder().decode(given.getString("bodyBase64")));
        message.setFlag(given.getIntValue("flag"));
        message.setSysFlag(given.getIntValue("sysFlag"));
        message.setBornTimestamp(given.containsKey("bornTimestamp")
            ? given.getLongValue("bornTimestamp") : System.currentTimeMillis());
        message.setBornHost(host(given, "bornHost", "127.0.0.1:50001"));
        message.setStoreHost(host(given, "storeHost", "127.0.0.1:10911"));
        message.setReconsumeTimes(given.getIntValue("reconsumeTimes"));
        message.setPreparedTransactionOffset(given.getLongValue("preparedTransactionOffset"));
        Map<String, String> properties = new HashMap<>();
        JSONObject wanted = given.getJSONObject("properties");
        if (wanted != null) {
            wanted.forEach((name, value) -> properties.put(name, (String) value));
        }
        MessageAccessor.setProperties(message, properties);

        PutMessageResult result = Release.put(store, message);
        AppendMessageResult appended = result.getAppendMessageResult();
        JSONObject row = new JSONObject(true);
        row.put("status", String.valueOf(result.getPutMessageStatus()));
        if (appended != null) {
            row.put("topic", message.getTopic());
            row.put("queueId", message.getQueueId());
            row.put("queueOffset", appended.getLogicsOffset());
            row.put("commitLogOffset", appended.getWroteOffset());
            row.put("storeSize", appended.getWroteBytes());
            row.put("storeTimestamp", appended.getStoreTimestamp());
            row.put("offsetMsgId", appended.getMsgId());
        }
        return row;
    }
}
