import com.alibaba.fastjson.JSONObject;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** lite.*: lite pull consumers. */
final class LitePulls {
    private static final Map<String, DefaultLitePullConsumer> CONSUMERS = new ConcurrentHashMap<>();

    private LitePulls() {
    }

    static void register(Map<String, Driver.Action> actions) {
        actions.put("lite.start", LitePulls::start);
        actions.put("lite.shutdown", LitePulls::shutdown);
        actions.put("lite.poll", LitePulls::poll);
        actions.put("lite.subscribe", LitePulls::subscribe);
        actions.put("lite.assign", request -> {
            of(request).assign(Messages.queues(request.getJSONArray("queues")));
            return null;
        });
        actions.put("lite.queues", request -> shown(of(request).fetchMessageQueues(request.getString("topic"))));
        actions.put("lite.assignment", request -> {
            // 4.9.8 has no assignment(): the implementation beneath has the table in both.
            return shown(of(request).getClass().getMethod("assignment").invoke(of(request)));
        });
        actions.put("lite.seek", LitePulls::seek);
        actions.put("lite.pause", request -> {
            of(request).pause(Messages.queues(request.getJSONArray("queues")));
            return null;
        });
        actions.put("lite.resume", request -> {
            of(request).resume(Messages.queues(request.getJSONArray("queues")));
            return null;
        });
        actions.put("lite.commit", request -> {
            of(request).commitSync();
            return null;
        });
        actions.put("lite.committed", request ->
            of(request).committed(Messages.queue(request.getJSONObject("queue"))));
        actions.put("lite.offsetForTimestamp", request -> of(request).offsetForTimestamp(
            Messages.queue(request.getJSONObject("queue")), request.getLong("timestamp")));
    }

    private static DefaultLitePullConsumer of(JSONObject request) {
        return CONSUMERS.get(request.getString("consumer"));
    }

    private static Object start(JSONObject request) throws Exception {
        String name = request.getString("consumer");
        DefaultLitePullConsumer consumer = new DefaultLitePullConsumer(request.getString("group"));
        consumer.setNamesrvAddr(request.getString("namesrv"));
        consumer.setInstanceName(name);
        Options.apply(consumer, request.getJSONObject("options"));
        CONSUMERS.put(name, consumer);
        if (request.containsKey("topics")) {
            for (Object item : request.getJSONArray("topics")) {
                subscribeTo(consumer, (JSONObject) item);
            }
        }
        consumer.start();
        return null;
    }

    private static Object shutdown(JSONObject request) {
        DefaultLitePullConsumer consumer = CONSUMERS.remove(request.getString("consumer"));
        if (consumer != null) {
            consumer.shutdown();
        }
        return null;
    }

    private static void subscribeTo(DefaultLitePullConsumer consumer, JSONObject wanted) throws Exception {
        String topic = wanted.getString("topic");
        if (wanted.containsKey("sql")) {
            consumer.subscribe(topic, MessageSelector.bySql(wanted.getString("sql")));
        } else {
            consumer.subscribe(topic, wanted.getString("expression"));
        }
    }

    private static Object subscribe(JSONObject request) throws Exception {
        subscribeTo(of(request), request);
        return null;
    }

    /** Polls until there are enough messages, or the time is over. */
    private static Object poll(JSONObject request) {
        int wanted = request.getIntValue("atLeast");
        long deadline = System.currentTimeMillis() + request.getLongValue("withinMs");
        List<MessageExt> messages = new ArrayList<>();
        do {
            long left = Math.max(1, Math.min(500, deadline - System.currentTimeMillis()));
            messages.addAll(of(request).poll(left));
        } while (messages.size() < wanted && System.currentTimeMillis() < deadline);
        return Messages.show(messages);
    }

    private static Object seek(JSONObject request) throws Exception {
        MessageQueue queue = Messages.queue(request.getJSONObject("queue"));
        Object to = request.get("to");
        if ("begin".equals(to)) {
            of(request).seekToBegin(queue);
        } else if ("end".equals(to)) {
            of(request).seekToEnd(queue);
        } else {
            of(request).seek(queue, request.getLongValue("to"));
        }
        return null;
    }

    private static List<JSONObject> shown(Object queues) {
        List<JSONObject> shown = new ArrayList<>();
        for (Object queue : (Iterable<?>) queues) {
            shown.add(Messages.show((MessageQueue) queue));
        }
        return shown;
    }
}
