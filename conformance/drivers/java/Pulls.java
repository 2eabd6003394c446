import com.alibaba.fastjson.JSONObject;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.common.message.MessageQueue;

/** pull.*: the plain pull consumer, which shows each answer of the broker as it is. */
@SuppressWarnings("deprecation")
final class Pulls {
    private static final Map<String, DefaultMQPullConsumer> CONSUMERS = new ConcurrentHashMap<>();

    private Pulls() {
    }

    static void register(Map<String, Driver.Action> actions) {
        actions.put("pull.start", Pulls::start);
        actions.put("pull.shutdown", Pulls::shutdown);
        actions.put("pull.pull", Pulls::pull);
        actions.put("pull.queues", request -> {
            List<JSONObject> shown = new ArrayList<>();
            for (MessageQueue queue : of(request).fetchSubscribeMessageQueues(request.getString("topic"))) {
                shown.add(Messages.show(queue));
            }
            return shown;
        });
        actions.put("pull.offset", Pulls::offset);
        actions.put("pull.update", request -> {
            of(request).updateConsumeOffset(
                Messages.queue(request.getJSONObject("queue")), request.getLongValue("offset"));
            // Persists what it is told to; persistConsumerOffset knows only queues of a rebalance.
            of(request).getDefaultMQPullConsumerImpl().getOffsetStore().persistAll(
                new java.util.HashSet<>(Messages.queues(java.util.Collections.singletonList(
                    request.getJSONObject("queue")))));
            return null;
        });
    }

    private static DefaultMQPullConsumer of(JSONObject request) {
        return CONSUMERS.get(request.getString("consumer"));
    }

    private static Object start(JSONObject request) throws Exception {
        String name = request.getString("consumer");
        DefaultMQPullConsumer consumer = new DefaultMQPullConsumer(request.getString("group"));
        consumer.setNamesrvAddr(request.getString("namesrv"));
        consumer.setInstanceName(name);
        Options.apply(consumer, request.getJSONObject("options"));
        consumer.start();
        CONSUMERS.put(name, consumer);
        return null;
    }

    private static Object shutdown(JSONObject request) {
        DefaultMQPullConsumer consumer = CONSUMERS.remove(request.getString("consumer"));
        if (consumer != null) {
            consumer.shutdown();
        }
        return null;
    }

    private static Object pull(JSONObject request) throws Exception {
        MessageQueue queue = Messages.queue(request.getJSONObject("queue"));
        long offset = request.getLongValue("offset");
        int count = request.getIntValue("count");
        DefaultMQPullConsumer consumer = of(request);
        long began = System.currentTimeMillis();
        PullResult result;
        if (request.containsKey("sql")) {
            result = consumer.pull(queue, MessageSelector.bySql(request.getString("sql")), offset, count);
        } else if (request.getBooleanValue("block")) {
            result = consumer.pullBlockIfNotFound(queue, request.getString("expression"), offset, count);
        } else {
            result = consumer.pull(queue, request.getString("expression"), offset, count);
        }
        JSONObject shown = new JSONObject();
        shown.put("status", result.getPullStatus().name());
        shown.put("nextBeginOffset", result.getNextBeginOffset());
        shown.put("minOffset", result.getMinOffset());
        shown.put("maxOffset", result.getMaxOffset());
        shown.put("tookMs", System.currentTimeMillis() - began);
        shown.put("messages", result.getMsgFoundList() == null
            ? new ArrayList<>() : Messages.show(result.getMsgFoundList()));
        return shown;
    }

    private static Object offset(JSONObject request) throws Exception {
        DefaultMQPullConsumer consumer = of(request);
        MessageQueue queue = Messages.queue(request.getJSONObject("queue"));
        switch (request.getString("which")) {
            case "min":
                return consumer.minOffset(queue);
            case "max":
                return consumer.maxOffset(queue);
            case "earliest":
                return consumer.earliestMsgStoreTime(queue);
            case "stored":
                return consumer.fetchConsumeOffset(queue, true);
            default:
                return consumer.searchOffset(queue, request.getLongValue("timestamp"));
        }
    }
}
