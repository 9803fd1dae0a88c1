import com.alibaba.nacos.api.naming.NamingService;
import com.alibaba.nacos.api.naming.listener.EventListener;
import com.alibaba.nacos.api.naming.pojo.Instance;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;

/** The calls of nacos-client 0.9, which knows no groups and no updates. */
final class Calls {
    static void register(NamingService naming, Wire.Order order) throws Exception {
        naming.registerInstance(order.service, order.instance());
    }

    static void deregister(NamingService naming, Wire.Order order) throws Exception {
        naming.deregisterInstance(order.service, order.ip, order.port, order.clusterOrDefault());
    }

    static void update(Properties properties, Wire.Order order) {
        throw new UnsupportedOperationException("nacos-client 0.9 has no update");
    }

    static List<Instance> lookup(NamingService naming, Wire.Order order) throws Exception {
        return naming.getAllInstances(order.service, new ArrayList<>(), false);
    }

    static void subscribe(NamingService naming, Wire.Order order, EventListener listener) throws Exception {
        naming.subscribe(order.service, listener);
    }

    static void batch(NamingService naming, Wire.Order order) {
        throw new UnsupportedOperationException("this nacos-client has no batch registration");
    }

    static void makePersistent(Instance instance) {
        throw new UnsupportedOperationException("nacos-client 0.9 has no persistent instances");
    }

    private Calls() {}
}
