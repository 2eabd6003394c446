import com.alibaba.fastjson.JSON;
import com.alibaba.fastjson.JSONObject;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.exception.MQClientException;

/**
 * The official Java client behind line-JSON on stdin and stdout; docs/conformance.md has the commands.
 * One source for client 4.9.8 and 5.x: what only one of them has is reached by reflection.
 */
public class Driver {
    /** One command; answers with whatever fastjson can write. */
    interface Action {
        Object run(JSONObject request) throws Exception;
    }

    static final Map<String, Action> ACTIONS = new ConcurrentHashMap<>();
    private static PrintStream replies;

    public static void main(String[] arguments) throws Exception {
        replies = new PrintStream(new FileOutputStream(FileDescriptor.out), false, "UTF-8");
        System.setOut(System.err); // whatever a library prints must not meet the replies
        Producers.register(ACTIONS);
        Consumers.register(ACTIONS);
        LitePulls.register(ACTIONS);
        Pulls.register(ACTIONS);
        Tools.register(ACTIONS);
        JSONObject hello = new JSONObject();
        hello.put("hello", Tools.hello());
        write(hello);
        ExecutorService workers = Executors.newCachedThreadPool();
        BufferedReader lines =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JSONObject request = JSON.parseObject(line);
            workers.execute(() -> serve(request));
        }
        Runtime.getRuntime().halt(0); // clients leave threads behind
    }

    private static void serve(JSONObject request) {
        JSONObject reply = new JSONObject();
        reply.put("id", request.get("id"));
        try {
            Action action = ACTIONS.get(request.getString("do"));
            if (action == null) {
                throw new UnsupportedOperationException(request.getString("do"));
            }
            reply.put("result", action.run(request));
        } catch (Throwable error) {
            reply.put("error", describe(error));
        }
        write(reply);
    }

    static JSONObject describe(Throwable error) {
        Throwable cause = error;
        while (cause instanceof InvocationTargetException && cause.getCause() != null) {
            cause = cause.getCause();
        }
        JSONObject said = new JSONObject();
        said.put("type", cause.getClass().getSimpleName());
        said.put("message", String.valueOf(cause.getMessage()));
        Throwable coded = cause;
        for (int depth = 0; coded != null && depth < 5; depth++, coded = coded.getCause()) {
            if (coded instanceof MQBrokerException) {
                said.put("code", ((MQBrokerException) coded).getResponseCode());
                break;
            }
            if (coded instanceof MQClientException && ((MQClientException) coded).getResponseCode() > 0) {
                said.put("code", ((MQClientException) coded).getResponseCode());
                break;
            }
        }
        return said;
    }

    private static synchronized void write(JSONObject reply) {
        replies.println(reply.toJSONString());
        replies.flush();
    }
}
