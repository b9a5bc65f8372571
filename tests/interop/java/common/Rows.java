import com.alibaba.fastjson.JSONObject;

import org.apache.rocketmq.common.message.MessageClientExt;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExt;

import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.util.TreeMap;

/** Messages as JSON rows, with the names that the manifests of tests/golden use. */
final class Rows {
    private static final int SYS_FLAG_POSITION = 36;
    private static final int BORN_HOST_IPV6 = 0x10;
    private static final int STORE_HOST_IPV6 = 0x20;

    private Rows() {
    }

    /** The row of one record as the store returned it; null if RocketMQ cannot decode it. */
    static JSONObject ofRecord(ByteBuffer record) throws Exception {
        MessageExt message = MessageDecoder.decode(record.duplicate(), true, true);
        if (message == null) {
            return null;
        }
        int sysFlag = record.getInt(record.position() + SYS_FLAG_POSITION);
        int bodyAt = 84 + ((sysFlag & BORN_HOST_IPV6) != 0 ? 12 : 0)
            + ((sysFlag & STORE_HOST_IPV6) != 0 ? 12 : 0);
        byte[] bytes = new byte[record.remaining()];
        record.duplicate().get(bytes);

        JSONObject row = ofMessage(message);
        row.put("sysFlag", sysFlag);     // 5.3 clears the compressed bit of what it inflates
        row.put("magic", record.getInt(record.position() + 4));
        row.put("storedBodyLength", record.getInt(record.position() + bodyAt));
        row.put("recordSha256", sha256(bytes));
        return row;
    }

    /** The row of a message that a client or the store decoded. */
    static JSONObject ofMessage(MessageExt message) throws Exception {
        byte[] body = message.getBody() == null ? new byte[0] : message.getBody();
        JSONObject row = new JSONObject(true);
        row.put("topic", message.getTopic());
        row.put("queueId", message.getQueueId());
        row.put("queueOffset", message.getQueueOffset());
        row.put("commitLogOffset", message.getCommitLogOffset());
        row.put("storeSize", message.getStoreSize());
        row.put("bodyCRC", message.getBodyCRC());
        row.put("sysFlag", message.getSysFlag());
        row.put("flag", message.getFlag());
        row.put("bornTimestamp", message.getBornTimestamp());
        row.put("storeTimestamp", message.getStoreTimestamp());
        row.put("bornHost", host(message.getBornHost()));
        row.put("storeHost", host(message.getStoreHost()));
        row.put("reconsumeTimes", message.getReconsumeTimes());
        row.put("preparedTransactionOffset", message.getPreparedTransactionOffset());
        row.put("properties", message.getProperties() == null
            ? null : new TreeMap<>(message.getProperties()));
        row.put("bodyLength", body.length);
        row.put("bodySha256", sha256(body));
        row.put("offsetMsgId", message instanceof MessageClientExt
            ? ((MessageClientExt) message).getOffsetMsgId() : message.getMsgId());
        return row;
    }

    private static String host(SocketAddress address) {
        InetSocketAddress host = (InetSocketAddress) address;
        String ip = host.getAddress().getHostAddress();
        return (ip.indexOf(':') >= 0 ? "[" + ip + "]" : ip) + ":" + host.getPort();
    }

    private static String sha256(byte[] bytes) throws Exception {
        StringBuilder hex = new StringBuilder();
        for (byte b : MessageDigest.getInstance("SHA-256").digest(bytes)) {
            hex.append(String.format("%02x", b));
        }
        return hex.toString();
    }
}
