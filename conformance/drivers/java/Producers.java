import com.alibaba.fastjson.JSONArray;
import com.alibaba.fastjson.JSONObject;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.QueryResult;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.MessageQueueSelector;
import org.apache.rocketmq.client.producer.RequestCallback;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.client.producer.TransactionSendResult;
import org.apache.rocketmq.client.producer.selector.SelectMessageQueueByHash;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** producer.*: sends of every kind, transactions, requests, queries. */
final class Producers {
    static final Map<String, DefaultMQProducer> PRODUCERS = new ConcurrentHashMap<>();
    private static final Map<String, Inbox> CHECKS = new ConcurrentHashMap<>();
    private static final long ASYNC_SECONDS = 60;
    /** Not the client's 3 s: the first send of a cold JVM on a loaded machine has needed more. */
    private static final int SEND_MS = 15000;

    private Producers() {
    }

    static void register(Map<String, Driver.Action> actions) {
        actions.put("producer.start", Producers::start);
        actions.put("producer.shutdown", Producers::shutdown);
        actions.put("producer.send", Producers::send);
        actions.put("producer.sendMany", Producers::sendMany);
        actions.put("producer.sendBatch", Producers::sendBatch);
        actions.put("producer.sendTransaction", Producers::sendTransaction);
        actions.put("producer.checks", request -> CHECKS.get(request.getString("producer")).await(request));
        actions.put("producer.request", Producers::request);
        actions.put("producer.recall", Producers::recall);
        actions.put("producer.queues", request -> queues(of(request), request.getString("topic")));
        actions.put("producer.createTopic", Producers::createTopic);
        actions.put("producer.view", request ->
            Messages.show(of(request).viewMessage(request.getString("topic"), request.getString("msgId"))));
        actions.put("producer.query", Producers::query);
        actions.put("producer.offset", Producers::offset);
    }

    private static DefaultMQProducer of(JSONObject request) {
        return PRODUCERS.get(request.getString("producer"));
    }

    private static Object start(JSONObject request) throws Exception {
        String name = request.getString("producer");
        String group = request.getString("group");
        DefaultMQProducer producer;
        if (request.getBooleanValue("transactional")) {
            TransactionMQProducer transactional = new TransactionMQProducer(group);
            Inbox checks = new Inbox();
            CHECKS.put(name, checks);
            transactional.setTransactionListener(new Decisions(checks));
            producer = transactional;
        } else if (request.getBooleanValue("trace")) {
            producer = new DefaultMQProducer(group, true, request.getString("traceTopic"));
        } else {
            producer = new DefaultMQProducer(group);
        }
        producer.setNamesrvAddr(request.getString("namesrv"));
        producer.setInstanceName(name);
        producer.setSendMsgTimeout(SEND_MS);
        Options.apply(producer, request.getJSONObject("options"));
        producer.start();
        PRODUCERS.put(name, producer);
        return null;
    }

    private static Object shutdown(JSONObject request) {
        DefaultMQProducer producer = PRODUCERS.remove(request.getString("producer"));
        if (producer != null) {
            producer.shutdown();
        }
        return null;
    }

    private static Object send(JSONObject request) throws Exception {
        Message message = Messages.read(request.getJSONObject("message"));
        JSONObject sent = sendOne(of(request), request, message);
        if (sent != null) {
            sent.put("uniqKey", message.getProperty("UNIQ_KEY"));
        }
        return sent;
    }

    private static JSONObject sendOne(DefaultMQProducer producer, JSONObject how, Message message)
        throws Exception {
        String mode = how.containsKey("mode") ? how.getString("mode") : "sync";
        long timeout = how.containsKey("timeoutMs") ? how.getLongValue("timeoutMs") : producer.getSendMsgTimeout();
        MessageQueue queue = how.containsKey("queue") ? Messages.queue(how.getJSONObject("queue")) : null;
        Object hash = how.get("hashKey");
        MessageQueueSelector byHash = new SelectMessageQueueByHash();
        if (mode.equals("oneway")) {
            if (queue != null) {
                producer.sendOneway(message, queue);
            } else if (hash != null) {
                producer.sendOneway(message, byHash, hash);
            } else {
                producer.sendOneway(message);
            }
            return null;
        }
        if (mode.equals("async")) {
            Waiting waiting = new Waiting();
            if (queue != null) {
                producer.send(message, queue, waiting, timeout);
            } else if (hash != null) {
                producer.send(message, byHash, hash, waiting, timeout);
            } else {
                producer.send(message, waiting, timeout);
            }
            return Messages.show(waiting.result());
        }
        if (queue != null) {
            return Messages.show(producer.send(message, queue, timeout));
        }
        if (hash != null) {
            return Messages.show(producer.send(message, byHash, hash, timeout));
        }
        return Messages.show(producer.send(message, timeout));
    }

    /** The same way of sending for each of several messages; stops at the first error. */
    private static Object sendMany(JSONObject request) throws Exception {
        List<JSONObject> results = new ArrayList<>();
        for (Object item : request.getJSONArray("messages")) {
            results.add(sendOne(of(request), request, Messages.read((JSONObject) item)));
        }
        return results;
    }

    private static Object sendBatch(JSONObject request) throws Exception {
        List<Message> batch = new ArrayList<>();
        for (Object item : request.getJSONArray("messages")) {
            batch.add(Messages.read((JSONObject) item));
        }
        DefaultMQProducer producer = of(request);
        if (request.containsKey("queue")) {
            return Messages.show(producer.send(batch, Messages.queue(request.getJSONObject("queue"))));
        }
        if ("async".equals(request.getString("mode"))) {
            Waiting waiting = new Waiting();
            producer.send(batch, waiting);
            return Messages.show(waiting.result());
        }
        return Messages.show(producer.send(batch));
    }

    private static Object sendTransaction(JSONObject request) throws Exception {
        Message message = Messages.read(request.getJSONObject("message"));
        TransactionSendResult result =
            ((TransactionMQProducer) of(request)).sendMessageInTransaction(message, null);
        JSONObject shown = Messages.show(result);
        shown.put("localState", result.getLocalTransactionState().name());
        return shown;
    }

    private static Object request(JSONObject request) throws Exception {
        Message message = Messages.read(request.getJSONObject("message"));
        long timeout = request.getLongValue("timeoutMs");
        DefaultMQProducer producer = of(request);
        Message reply;
        if ("async".equals(request.getString("mode"))) {
            CompletableFuture<Message> future = new CompletableFuture<>();
            producer.request(message, new RequestCallback() {
                @Override
                public void onSuccess(Message answer) {
                    if (answer != null) { // null: sent, and not answered yet
                        future.complete(answer);
                    }
                }

                @Override
                public void onException(Throwable error) {
                    future.completeExceptionally(error);
                }
            }, timeout);
            reply = unwrapped(future);
        } else {
            reply = producer.request(message, timeout);
        }
        JSONObject shown = new JSONObject();
        shown.put("body", new String(reply.getBody(), java.nio.charset.StandardCharsets.UTF_8));
        shown.put("properties", reply.getProperties());
        return shown;
    }

    private static Object recall(JSONObject request) throws Exception {
        return DefaultMQProducer.class.getMethod("recallMessage", String.class, String.class)
            .invoke(of(request), request.getString("topic"), request.getString("handle"));
    }

    static Object queues(DefaultMQProducer producer, String topic) throws Exception {
        List<JSONObject> shown = new ArrayList<>();
        for (MessageQueue queue : producer.fetchPublishMessageQueues(topic)) {
            shown.add(Messages.show(queue));
        }
        return shown;
    }

    private static Object createTopic(JSONObject request) throws Exception {
        DefaultMQProducer producer = of(request);
        String key = request.containsKey("key") ? request.getString("key") : "TBW102";
        String topic = request.getString("topic");
        int queues = request.getIntValue("queues");
        try {
            DefaultMQProducer.class.getMethod("createTopic", String.class, String.class, int.class)
                .invoke(producer, key, topic, queues);
        } catch (NoSuchMethodException newer) { // 5.x asks for attributes as well
            DefaultMQProducer.class.getMethod("createTopic", String.class, String.class, int.class, Map.class)
                .invoke(producer, key, topic, queues, new java.util.HashMap<String, String>());
        }
        return null;
    }

    private static Object query(JSONObject request) throws Exception {
        QueryResult found = of(request).queryMessage(request.getString("topic"), request.getString("key"),
            request.getIntValue("count"), request.getLongValue("begin"), request.getLongValue("end"));
        return Messages.show(found.getMessageList());
    }

    private static Object offset(JSONObject request) throws Exception {
        DefaultMQProducer producer = of(request);
        MessageQueue queue = Messages.queue(request.getJSONObject("queue"));
        switch (request.getString("which")) {
            case "min":
                return producer.minOffset(queue);
            case "max":
                return producer.maxOffset(queue);
            case "earliest":
                return producer.earliestMsgStoreTime(queue);
            default:
                return producer.searchOffset(queue, request.getLongValue("timestamp"));
        }
    }

    private static <T> T unwrapped(CompletableFuture<T> future) throws Exception {
        try {
            return future.get(ASYNC_SECONDS, TimeUnit.SECONDS);
        } catch (java.util.concurrent.ExecutionException failed) {
            throw failed.getCause() instanceof Exception ? (Exception) failed.getCause() : failed;
        }
    }

    /** An asynchronous send, waited for. */
    private static final class Waiting implements SendCallback {
        private final CompletableFuture<SendResult> future = new CompletableFuture<>();

        @Override
        public void onSuccess(SendResult result) {
            future.complete(result);
        }

        @Override
        public void onException(Throwable error) {
            future.completeExceptionally(error);
        }

        SendResult result() throws Exception {
            return unwrapped(future);
        }
    }

    /** Decides as the message's own properties say: "local", and "check" with one word for each check. */
    private static final class Decisions implements TransactionListener {
        private final Inbox checks;
        private final Map<String, Integer> counts = new ConcurrentHashMap<>();

        Decisions(Inbox checks) {
            this.checks = checks;
        }

        @Override
        public LocalTransactionState executeLocalTransaction(Message message, Object argument) {
            String local = message.getProperty("local");
            if ("throw".equals(local)) {
                throw new IllegalStateException("the local transaction failed");
            }
            return state(local);
        }

        @Override
        public LocalTransactionState checkLocalTransaction(MessageExt message) {
            checks.add(Messages.show(message));
            String[] words = String.valueOf(message.getProperty("check")).split(",");
            int count = counts.merge(message.getTransactionId(), 1, Integer::sum);
            return state(words[Math.min(count, words.length) - 1]);
        }

        private static LocalTransactionState state(String word) {
            if ("commit".equals(word)) {
                return LocalTransactionState.COMMIT_MESSAGE;
            }
            return "rollback".equals(word) ? LocalTransactionState.ROLLBACK_MESSAGE : LocalTransactionState.UNKNOW;
        }
    }
}
