import com.alibaba.nacos.api.NacosFactory;
import com.alibaba.nacos.api.naming.NamingService;
import com.alibaba.nacos.api.naming.listener.EventListener;
import com.alibaba.nacos.api.naming.pojo.Instance;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;

/** The calls of nacos-client 2.x and 3.x. */
final class Calls {
    static void register(NamingService naming, Wire.Order order) throws Exception {
        naming.registerInstance(order.service, group(order), order.instance());
    }

    static void deregister(NamingService naming, Wire.Order order) throws Exception {
        naming.deregisterInstance(order.service, group(order), order.instance());
    }

    static void update(Properties properties, Wire.Order order) throws Exception {
        NacosFactory.createMaintainService(properties).updateInstance(order.service, group(order), order.instance());
    }

    static List<Instance> lookup(NamingService naming, Wire.Order order) throws Exception {
        return naming.getAllInstances(order.service, group(order), false);
    }

    static void subscribe(NamingService naming, Wire.Order order, EventListener listener) throws Exception {
        naming.subscribe(order.service, group(order), listener);
    }

    static void batch(NamingService naming, Wire.Order order) throws Exception {
        List<Instance> instances = new ArrayList<>();
        for (Wire.Order member : order.batch) {
            instances.add(member.instance());
        }
        naming.batchRegisterInstance(order.service, group(order), instances);
    }

    static void makePersistent(Instance instance) {
        instance.setEphemeral(false);
    }

    private static String group(Wire.Order order) {
        return order.group == null || order.group.isEmpty() ? "DEFAULT_GROUP" : order.group;
    }

    private Calls() {}
}
