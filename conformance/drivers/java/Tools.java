import com.alibaba.fastjson.JSONObject;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

/** What the driver says of itself, and mqadmin where its jar is there. */
final class Tools {
    private Tools() {
    }

    static void register(Map<String, Driver.Action> actions) {
        actions.put("hello", request -> hello());
        actions.put("mqadmin", Tools::mqadmin);
    }

    static JSONObject hello() {
        List<String> features = new ArrayList<>(Arrays.asList(
            "send", "async", "oneway", "selector", "batch", "tags", "sql", "order", "broadcast", "retry", "delay",
            "timer", "transaction", "request", "lite", "pull", "query", "trace", "namespace", "vip", "options"));
        if (has("org.apache.rocketmq.client.producer.SendResult", "getRecallHandle")) {
            features.add("recall");
        }
        if (has("org.apache.rocketmq.tools.command.MQAdminStartup", "main0")) {
            features.add("mqadmin");
        }
        if (has("org.apache.rocketmq.client.consumer.DefaultMQPushConsumer", "setClientRebalance")) {
            features.add("pop");
        }
        JSONObject json = new JSONObject();
        json.put("client", "rocketmq-client-java");
        json.put("features", features);
        json.put("commands", new ArrayList<>(Driver.ACTIONS.keySet()));
        return json;
    }

    private static boolean has(String type, String method) {
        try {
            for (Method each : Class.forName(type).getMethods()) {
                if (each.getName().equals(method)) {
                    return true;
                }
            }
        } catch (ClassNotFoundException absent) {
            return false;
        }
        return false;
    }

    /** One command of the stock tool; its output is all that it has, so only one runs at a time. */
    private static synchronized Object mqadmin(JSONObject request) throws Exception {
        String[] arguments = request.getJSONArray("arguments").toArray(new String[0]);
        ByteArrayOutputStream said = new ByteArrayOutputStream();
        PrintStream to = new PrintStream(said, true, "UTF-8");
        PrintStream out = System.out;
        PrintStream err = System.err;
        System.setOut(to);
        System.setErr(to);
        try {
            Class<?> startup = Class.forName("org.apache.rocketmq.tools.command.MQAdminStartup");
            forgetCommands(startup);
            for (Method method : startup.getMethods()) {
                if (method.getName().equals("main0")) {
                    method.invoke(null, arguments, null);
                }
            }
        } finally {
            System.setOut(out);
            System.setErr(err);
        }
        return said.toString("UTF-8");
    }

    /** Some commands keep the client of their first call, with its name server: each gets a new one. */
    private static void forgetCommands(Class<?> startup) throws Exception {
        for (java.lang.reflect.Field field : startup.getDeclaredFields()) {
            if (List.class.isAssignableFrom(field.getType())) {
                field.setAccessible(true);
                ((List<?>) field.get(null)).clear();
            }
        }
    }
}
