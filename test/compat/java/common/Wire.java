import com.alibaba.nacos.api.naming.pojo.Instance;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** The lines between the test and the driver; the test describes them. */
final class Wire {
    static final class Order {
        int id;
        String op;
        String service;
        String group;
        String cluster;
        String ip;
        int port;
        double weight;
        boolean enabled;
        boolean persistent;
        Map<String, String> metadata;
        List<Order> batch;

        String clusterOrDefault() {
            return cluster == null || cluster.isEmpty() ? "DEFAULT" : cluster;
        }

        Instance instance() {
            Instance instance = new Instance();
            instance.setIp(ip);
            instance.setPort(port);
            instance.setClusterName(clusterOrDefault());
            instance.setWeight(weight);
            instance.setEnabled(enabled);
            if (persistent) {
                Calls.makePersistent(instance);
            }
            instance.setMetadata(metadata == null ? new HashMap<>() : metadata);
            return instance;
        }
    }

    static final class Host {
        String ip;
        int port;
        String cluster;
        double weight;
        boolean enabled;
        boolean healthy;
        Map<String, String> metadata;

        Host(Instance instance) {
            ip = instance.getIp();
            port = instance.getPort();
            cluster = instance.getClusterName();
            weight = instance.getWeight();
            enabled = instance.isEnabled();
            healthy = instance.isHealthy();
            metadata = instance.getMetadata();
        }

        static List<Host> all(List<Instance> instances) {
            List<Host> hosts = new ArrayList<>();
            for (Instance instance : instances) {
                hosts.add(new Host(instance));
            }
            return hosts;
        }
    }

    /** An answer to an order, or what a listener was told. */
    static final class Line {
        String ready;
        int id;
        String error;
        String text;
        String service;
        List<Host> hosts;
    }

    private Wire() {}
}
