import com.alibaba.fastjson.JSONObject;

import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.common.MixAll;
import org.apache.rocketmq.remoting.netty.NettyServerConfig;
import org.apache.rocketmq.store.config.MessageStoreConfig;

import java.util.Properties;

/** RocketMQ's settings objects, filled from names and values as in a broker.conf. */
final class Settings {
    final BrokerConfig broker = new BrokerConfig();
    final MessageStoreConfig store = new MessageStoreConfig();
    final NettyServerConfig server = new NettyServerConfig();

    /** A name that no settings object knows is an error: RocketMQ would just ignore it. */
    Settings(String root, JSONObject given) {
        Properties properties = new Properties();
        given.forEach((name, value) -> properties.setProperty(name, String.valueOf(value)));
        Properties known = new Properties();
        for (Object config : new Object[] {broker, store, server}) {
            known.putAll(MixAll.object2Properties(config));
            MixAll.properties2Object(properties, config);
        }
        for (String name : given.keySet()) {
            if (!known.containsKey(name)) {
                throw new IllegalArgumentException("RocketMQ has no setting " + name);
            }
        }
        store.setStorePathRootDir(root);
        store.setStorePathCommitLog(root + "/commitlog");
    }
}
