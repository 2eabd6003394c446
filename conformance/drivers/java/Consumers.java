import com.alibaba.fastjson.JSONObject;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyContext;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyContext;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.utils.MessageUtil;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** consumer.*: push consumers. A message's own properties tell the listener what to do with it. */
final class Consumers {
    private static final Map<String, DefaultMQPushConsumer> CONSUMERS = new ConcurrentHashMap<>();
    private static final Map<String, Inbox> INBOXES = new ConcurrentHashMap<>();

    private Consumers() {
    }

    static void register(Map<String, Driver.Action> actions) {
        actions.put("consumer.start", Consumers::start);
        actions.put("consumer.received", request -> INBOXES.get(request.getString("consumer")).await(request));
        actions.put("consumer.shutdown", Consumers::shutdown);
        actions.put("consumer.suspend", request -> run(() -> of(request).suspend()));
        actions.put("consumer.resume", request -> run(() -> of(request).resume()));
        actions.put("consumer.queues", Consumers::queues);
        actions.put("consumer.subscribe", request -> {
            of(request).subscribe(request.getString("topic"), request.getString("expression"));
            return null;
        });
        actions.put("consumer.unsubscribe", request ->
            run(() -> of(request).unsubscribe(request.getString("topic"))));
        actions.put("consumer.persist", request ->
            run(() -> of(request).getDefaultMQPushConsumerImpl().persistConsumerOffset()));
    }

    private static DefaultMQPushConsumer of(JSONObject request) {
        return CONSUMERS.get(request.getString("consumer"));
    }

    private static Object run(Runnable action) {
        action.run();
        return null;
    }

    private static Object start(JSONObject request) throws Exception {
        String name = request.getString("consumer");
        String group = request.getString("group");
        DefaultMQPushConsumer consumer = request.getBooleanValue("trace")
            ? new DefaultMQPushConsumer(group, null, new AllocateMessageQueueAveragely(), true,
                request.getString("traceTopic"))
            : new DefaultMQPushConsumer(group);
        consumer.setNamesrvAddr(request.getString("namesrv"));
        consumer.setInstanceName(name);
        Options.apply(consumer, request.getJSONObject("options"));
        for (Object item : request.getJSONArray("topics")) {
            subscribe(consumer, (JSONObject) item);
        }
        Inbox inbox = new Inbox();
        INBOXES.put(name, inbox);
        if ("orderly".equals(request.getString("mode"))) {
            consumer.registerMessageListener(new Orderly(inbox));
        } else {
            consumer.registerMessageListener(new Concurrently(inbox, request.getString("replyWith")));
        }
        consumer.start();
        CONSUMERS.put(name, consumer);
        return null;
    }

    private static void subscribe(DefaultMQPushConsumer consumer, JSONObject wanted) throws Exception {
        String topic = wanted.getString("topic");
        if (wanted.containsKey("sql")) {
            consumer.subscribe(topic, MessageSelector.bySql(wanted.getString("sql")));
        } else {
            consumer.subscribe(topic, wanted.getString("expression"));
        }
    }

    private static Object shutdown(JSONObject request) {
        DefaultMQPushConsumer consumer = CONSUMERS.remove(request.getString("consumer"));
        if (consumer != null) {
            consumer.shutdown();
        }
        return null;
    }

    /** The queues that the consumer holds now, by its own rebalance. */
    private static Object queues(JSONObject request) {
        List<JSONObject> shown = new ArrayList<>();
        for (MessageQueue queue : of(request).getDefaultMQPushConsumerImpl().getRebalanceImpl()
            .getProcessQueueTable().keySet()) {
            shown.add(Messages.show(queue));
        }
        return shown;
    }

    private static void note(Inbox inbox, List<MessageExt> messages) {
        for (MessageExt message : messages) {
            JSONObject shown = Messages.show(message);
            shown.put("batchSize", messages.size());
            shown.put("receivedAt", System.currentTimeMillis());
            shown.put("thread", Thread.currentThread().getName());
            inbox.add(shown);
        }
    }

    /** Whether one of the messages shall fail this time: "fail" is how often. */
    private static boolean fails(List<MessageExt> messages) {
        for (MessageExt message : messages) {
            String times = message.getUserProperty("fail");
            if (times != null && message.getReconsumeTimes() < Integer.parseInt(times)) {
                return true;
            }
        }
        return false;
    }

    private static int number(List<MessageExt> messages, String property, int otherwise) {
        String text = messages.get(0).getUserProperty(property);
        return text == null ? otherwise : Integer.parseInt(text);
    }

    private static void pause(List<MessageExt> messages) {
        int pause = number(messages, "sleepMs", 0);
        if (pause > 0) {
            try {
                Thread.sleep(pause);
            } catch (InterruptedException stopped) {
                Thread.currentThread().interrupt();
            }
        }
    }

    private static final class Concurrently implements MessageListenerConcurrently {
        private final Inbox inbox;
        private final String replyWith;

        Concurrently(Inbox inbox, String replyWith) {
            this.inbox = inbox;
            this.replyWith = replyWith;
        }

        @Override
        public ConsumeConcurrentlyStatus consumeMessage(
            List<MessageExt> messages, ConsumeConcurrentlyContext context) {
            note(inbox, messages);
            pause(messages);
            if (replyWith != null) {
                reply(messages);
            }
            if (!fails(messages)) {
                return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            }
            context.setDelayLevelWhenNextConsume(number(messages, "failDelay", 1));
            if (messages.get(0).getUserProperty("throw") != null) {
                throw new IllegalStateException("the listener failed");
            }
            return ConsumeConcurrentlyStatus.RECONSUME_LATER;
        }

        private void reply(List<MessageExt> messages) {
            DefaultMQProducer producer = Producers.PRODUCERS.get(replyWith);
            for (MessageExt message : messages) {
                try {
                    String body = "re: " + new String(message.getBody(), "UTF-8");
                    producer.send(MessageUtil.createReplyMessage(message, body.getBytes("UTF-8")), 3000);
                } catch (Exception failed) {
                    JSONObject note = new JSONObject();
                    note.put("replyError", Driver.describe(failed));
                    inbox.add(note);
                }
            }
        }
    }

    private static final class Orderly implements MessageListenerOrderly {
        private final Inbox inbox;

        Orderly(Inbox inbox) {
            this.inbox = inbox;
        }

        @Override
        public ConsumeOrderlyStatus consumeMessage(List<MessageExt> messages, ConsumeOrderlyContext context) {
            note(inbox, messages);
            pause(messages);
            if (!fails(messages)) {
                return ConsumeOrderlyStatus.SUCCESS;
            }
            context.setSuspendCurrentQueueTimeMillis(number(messages, "suspendMs", 200));
            return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT;
        }
    }
}
