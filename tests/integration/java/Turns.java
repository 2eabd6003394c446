import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.common.UtilAll;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** An application that outlives its broker: official producer and consumers, one command a line. */
public class Turns {
    private static final String TOPIC = "Turns";
    private static final String END = "== end of output ==";
    private static final Map<String, DefaultMQPushConsumer> consumers = new HashMap<>();
    private static final Map<String, ConcurrentLinkedQueue<String>> received = new HashMap<>();
    private static volatile boolean decides = false;
    private static String namesrv;
    private static TransactionMQProducer producer;

    public static void main(String[] arguments) throws Exception {
        namesrv = arguments[0];
        producer = new TransactionMQProducer("turns");
        producer.setNamesrvAddr(namesrv);
        producer.setPollNameServerInterval(500);
        producer.setHeartbeatBrokerInterval(500);
        producer.setTransactionListener(new Decisions());
        producer.start();
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            String[] words = line.split("\t");
            switch (words[0]) {
                case "send" -> send(words[1]);
                case "consume" -> consume(words[1], words.length > 2);
                case "received" -> received.get(words[1]).forEach(System.out::println);
                case "decide" -> decides = words[1].equals("true");
                default -> throw new IllegalArgumentException(line);
            }
            System.out.println(END);
            System.out.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    /** Undecided until told to decide; then the last letter of the key says what. */
    private static class Decisions implements TransactionListener {
        @Override
        public LocalTransactionState executeLocalTransaction(Message message, Object argument) {
            return LocalTransactionState.UNKNOW;
        }

        @Override
        public LocalTransactionState checkLocalTransaction(MessageExt message) {
            if (!decides) {
                return LocalTransactionState.UNKNOW;
            }
            return message.getKeys().endsWith("c") ? LocalTransactionState.COMMIT_MESSAGE
                : LocalTransactionState.ROLLBACK_MESSAGE;
        }
    }

    private static Message message(String key, byte[] body) {
        Message message = new Message(TOPIC, "Tag" + key.length() % 2, key, body);
        message.putUserProperty("kind", key.replaceAll("[0-9]", "") + " 种");
        return message;
    }

    private static Message message(String key) {
        return message(key, ("body of " + key).getBytes(StandardCharsets.UTF_8));
    }

    private static void say(Message message, SendResult result) {
        System.out.println("sent " + message.getKeys() + " " + result.getSendStatus() + " "
            + result.getMsgId() + " " + result.getMessageQueue().getQueueId() + " "
            + result.getQueueOffset());
    }

    private static SendResult sendFirst(Message message) throws Exception {
        for (int left = 100; ; left--) {
            try {
                return producer.send(message);
            } catch (Exception error) {
                if (left == 0) {
                    throw error;
                }
                Thread.sleep(200);
            }
        }
    }

    private static void send(String round) throws Exception {
        Random random = new Random(round.hashCode());
        for (int number = 0; number < 10; number++) {
            Message plain = message(round + "-plain-" + number);
            say(plain, number == 0 ? sendFirst(plain) : producer.send(plain));
        }
        for (int number = 0; number < 6; number++) {
            byte[] body = new byte[30_000];
            random.nextBytes(body);
            Message big = message(round + "-big-" + number, body);
            say(big, producer.send(big));
            Message repeated = message(round + "-zip-" + number, "abc".repeat(5000).getBytes());
            say(repeated, producer.send(repeated));
        }
        List<Message> batch = new ArrayList<>();
        for (int number = 0; number < 8; number++) {
            batch.add(message(round + "-batch-" + number));
        }
        System.out.println("batch " + producer.send(batch).getSendStatus());
        for (int number = 0; number < 8; number++) {
            Message ordered = message(round + "-order-" + number);
            say(ordered, producer.send(ordered, (queues, m, queue) -> queues.get((int) queue), 1));
        }
        for (int number = 0; number < 3; number++) {
            Message delayed = message(round + "-delay-" + number);
            delayed.setDelayTimeLevel(2);
            producer.send(delayed);
            Message timer = message(round + "-timer-" + number);
            timer.setDelayTimeMs(12_000);
            producer.send(timer);
        }
        for (int number = 0; number < 2; number++) {
            Message retried = message(round + "-retry-" + number);
            say(retried, producer.send(retried));
        }
        for (String end : new String[] {"0c", "1r", "2c", "3r"}) {
            producer.sendMessageInTransaction(message(round + "-half-" + end), null);
        }
    }

    private static void consume(String group, boolean defers) throws Exception {
        ConcurrentLinkedQueue<String> lines = new ConcurrentLinkedQueue<>();
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(group);
        consumer.setNamesrvAddr(namesrv);
        consumer.setPollNameServerInterval(500);
        consumer.setHeartbeatBrokerInterval(500);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(TOPIC, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            MessageExt message = messages.get(0);
            if (defers && message.getKeys().contains("-retry-") && message.getReconsumeTimes() == 0) {
                return ConsumeConcurrentlyStatus.RECONSUME_LATER;
            }
            lines.add(describe(message));
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        received.put(group, lines);
        consumers.put(group, consumer);
        consumer.start();
    }

    /** All that an application can see of a message, but for what the client adds to it. */
    private static String describe(MessageExt message) {
        Map<String, String> properties = new TreeMap<>(message.getProperties());
        for (String name : List.of("MIN_OFFSET", "MAX_OFFSET", "CONSUME_START_TIME")) {
            properties.remove(name);
        }
        return "got " + message.getKeys() + " " + message.getReconsumeTimes() + " | "
            + message.getMsgId() + " " + message.getTopic() + " " + message.getQueueId() + " "
            + message.getQueueOffset() + " " + message.getCommitLogOffset() + " "
            + message.getStoreTimestamp() + " " + message.getBornTimestamp() + " "
            + message.getStoreHost() + " " + message.getSysFlag() + " "
            + message.getPreparedTransactionOffset() + " "
            + UtilAll.crc32(message.getBody()) + " " + properties;
    }
}
