import org.apache.rocketmq.broker.BrokerStartup;

/** RocketMQ's BrokerStartup, ended without a shutdown if the process that started it is gone. */
final class BrokerMain {
    private BrokerMain() {
    }

    public static void main(String[] args) throws Exception {
        Thread watch = new Thread(() -> {
            try {
                while (System.in.read() >= 0) {
                    continue;
                }
            } catch (java.io.IOException closed) {
                closed.printStackTrace();
            }
            Runtime.getRuntime().halt(0);
        }, "parent-watch");
        watch.setDaemon(true);
        watch.start();
        BrokerStartup.main(args);
    }
}
