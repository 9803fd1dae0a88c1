import com.alibaba.nacos.api.NacosFactory;
import com.alibaba.nacos.api.config.ConfigService;
import com.alibaba.nacos.api.config.listener.AbstractListener;
import com.alibaba.nacos.api.exception.NacosException;
import com.alibaba.nacos.api.naming.NamingService;
import com.alibaba.nacos.api.naming.listener.EventListener;
import com.alibaba.nacos.api.naming.listener.NamingEvent;
import com.google.gson.Gson;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.Properties;

/**
 * Drives nacos-client for the compatibility tests: reads orders from standard input
 * and writes what the SDK saw to standard output, one JSON object a line.
 * Arguments: SDK version, server host, server port, namespace.
 */
public final class Driver {
    private static final Gson GSON = new Gson();

    private final PrintStream out;
    private final Properties properties = new Properties();
    private final NamingService naming;

    private Driver(PrintStream out, String server, String namespace) throws Exception {
        this.out = out;
        properties.setProperty("serverAddr", server);
        properties.setProperty("namespace", namespace.isEmpty() ? "public" : namespace);
        naming = NacosFactory.createNamingService(properties);
    }

    public static void main(String[] args) throws Exception {
        PrintStream out = System.out;
        System.setOut(System.err); // what the SDK prints is not for the test
        Driver driver = new Driver(out, args[1] + ":" + args[2], args[3]);
        Wire.Line ready = new Wire.Line();
        ready.ready = "nacos-client " + args[0];
        driver.print(ready);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String text = in.readLine(); text != null; text = in.readLine()) {
            driver.obey(GSON.fromJson(text, Wire.Order.class));
        }
        System.exit(0);
    }

    private synchronized void print(Wire.Line line) {
        out.println(GSON.toJson(line));
        out.flush();
    }

    private void obey(Wire.Order order) {
        Wire.Line answer = new Wire.Line();
        answer.id = order.id;
        try {
            run(order, answer);
        } catch (Exception e) {
            e.printStackTrace();
            answer.error = e.toString();
        }
        print(answer);
    }

    private void run(Wire.Order order, Wire.Line answer) throws Exception {
        switch (order.op) {
            case "register":
                Calls.register(naming, order);
                break;
            case "deregister":
                Calls.deregister(naming, order);
                break;
            case "update":
                Calls.update(properties, order);
                break;
            case "lookup":
                answer.hosts = Wire.Host.all(Calls.lookup(naming, order));
                break;
            case "batch":
                Calls.batch(naming, order);
                break;
            case "config":
                answer.text = config(order.service, order.group);
                break;
            case "subscribe":
                Calls.subscribe(naming, order, listener(order.service));
                break;
            case "status":
                answer.text = naming.getServerStatus();
                break;
            default:
                throw new IllegalArgumentException("no order " + order.op);
        }
    }

    /** Reads, watches and publishes a configuration, and leaves the watch on. */
    private String config(String dataId, String group) throws Exception {
        ConfigService configs = NacosFactory.createConfigService(properties);
        String text = "get: " + configs.getConfig(dataId, group, 3000);
        configs.addListener(dataId, group, new AbstractListener() {
            @Override
            public void receiveConfigInfo(String content) {
                System.err.println("the listener was told " + content);
            }
        });
        try {
            return text + "; publish: " + configs.publishConfig(dataId, group, "a");
        } catch (NacosException e) {
            return text + "; publish: " + e;
        }
    }

    private EventListener listener(String service) {
        return event -> {
            Wire.Line told = new Wire.Line();
            told.service = service;
            told.hosts = Wire.Host.all(((NamingEvent) event).getInstances());
            print(told);
        };
    }
}
