import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.StringJoiner;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.common.compression.CompressionType;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** Official clients that write every kind of message, and read whole queues, on command. */
public class Columns {
    private static final String TOPIC = "Columns";
    private static final String GROUP = "columns_readers";
    private static final String BROKER = "broker-a";
    private static final int QUEUES = 4;
    private static TransactionMQProducer producer;
    private static DefaultMQPullConsumer consumer;

    public static void main(String[] arguments) throws Exception {
        producer = new TransactionMQProducer("columns");
        producer.setNamesrvAddr(arguments[0]);
        producer.setPollNameServerInterval(500);
        producer.setTransactionListener(new Decisions());
        producer.start();
        consumer = new DefaultMQPullConsumer(GROUP);
        consumer.setNamesrvAddr(arguments[0]);
        consumer.setPollNameServerInterval(500);
        consumer.start();
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            String[] words = line.split("\t");
            if (words[0].equals("send")) {
                send(words[1]);
            } else {
                for (int at = 1; at < words.length; at++) {
                    String[] queue = words[at].split("/");
                    read(new MessageQueue(queue[0], BROKER, Integer.parseInt(queue[1])));
                }
            }
            System.out.println("== end of output ==");
            System.out.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    private static class Decisions implements TransactionListener {
        @Override
        public LocalTransactionState executeLocalTransaction(Message message, Object argument) {
            return message.getKeys().endsWith("c") ? LocalTransactionState.COMMIT_MESSAGE
                : LocalTransactionState.ROLLBACK_MESSAGE;
        }

        @Override
        public LocalTransactionState checkLocalTransaction(MessageExt message) {
            return LocalTransactionState.ROLLBACK_MESSAGE;
        }
    }

    private static Message message(String key, byte[] body) {
        Message message = new Message(TOPIC, "Tag" + key.length() % 2, key + " also-" + key, body);
        message.putUserProperty("kind", key.replaceAll("[0-9]", "") + " 种 🜂");
        message.putUserProperty("n", String.valueOf(key.length()));
        return message;
    }

    private static Message message(String key) {
        return message(key, ("body of " + key).getBytes(StandardCharsets.UTF_8));
    }

    private static long stored(String topic, int queues) throws Exception {
        long total = 0;
        for (int id = 0; id < queues; id++) {
            total += consumer.maxOffset(new MessageQueue(topic, BROKER, id));
        }
        return total;
    }

    private static void sendFirst(Message message) throws Exception {
        for (int left = 100; ; left--) {
            try {
                producer.send(message);
                return;
            } catch (Exception error) {
                if (left == 0) {
                    throw error;
                }
                Thread.sleep(200);
            }
        }
    }

    private static void send(String round) throws Exception {
        sendFirst(new Message(TOPIC, ("bare " + round).getBytes()));
        long before = stored(TOPIC, QUEUES);
        Random random = new Random(round.hashCode());
        for (int number = 0; number < 30; number++) {
            Message plain = message(round + "-plain-" + number);
            plain.setFlag(number * 1000);
            producer.send(plain);
            byte[] body = new byte[random.nextInt(20_000) + 1];
            random.nextBytes(body);
            producer.send(message(round + "-big-" + number, body));
        }
        for (CompressionType type : CompressionType.values()) {
            producer.setCompressType(type);
            for (int number = 0; number < 4; number++) {
                byte[] body = ("abc" + number).repeat(5000).getBytes();
                producer.send(message(round + "-" + type + "-" + number, body));
            }
        }
        List<Message> batch = new ArrayList<>();
        for (int number = 0; number < 8; number++) {
            batch.add(message(round + "-batch-" + number));
        }
        producer.send(batch);
        for (int number = 0; number < 3; number++) {
            Message delayed = message(round + "-delay-" + number);
            delayed.setDelayTimeLevel(1);
            producer.send(delayed);
            Message timer = message(round + "-timer-" + number);
            timer.setDelayTimeMs(1000);
            producer.send(timer);
        }
        for (String end : new String[] {"0c", "1r", "2c"}) {
            producer.sendMessageInTransaction(message(round + "-half-" + end), null);
        }
        retryOne();
        long wanted = before + 60 + 12 + 8 + 6 + 2;
        for (int left = 300; stored(TOPIC, QUEUES) < wanted; left--) {
            if (left == 0) {
                throw new IllegalStateException("stored " + stored(TOPIC, QUEUES) + " of " + wanted);
            }
            Thread.sleep(100);
        }
    }

    /** One message is consumed again, and one is given up. */
    private static void retryOne() throws Exception {
        MessageQueue queue = new MessageQueue(TOPIC, BROKER, 0);
        List<MessageExt> found = pull(queue, consumer.minOffset(queue)).getMsgFoundList();
        consumer.sendMessageBack(found.get(0), 1);
        consumer.sendMessageBack(found.get(1), -1);
    }

    private static PullResult pull(MessageQueue queue, long offset) throws Exception {
        for (int left = 100; ; left--) {
            PullResult result = consumer.pull(queue, "*", offset, 32);
            if (result.getPullStatus() == PullStatus.FOUND || left == 0) {
                return result;
            }
            Thread.sleep(100);
        }
    }

    private static void read(MessageQueue queue) throws Exception {
        long end = consumer.maxOffset(queue);
        for (long offset = consumer.minOffset(queue); offset < end; ) {
            PullResult result = pull(queue, offset);
            if (result.getPullStatus() != PullStatus.FOUND) {
                throw new IllegalStateException(queue + " at " + offset + ": " + result);
            }
            result.getMsgFoundList().forEach(Columns::say);
            offset = result.getNextBeginOffset();
        }
    }

    private static String text(String text) {
        return text == null ? "-" : encoded(text.getBytes(StandardCharsets.UTF_8));
    }

    private static String encoded(byte[] bytes) {
        return "=" + Base64.getEncoder().encodeToString(bytes);
    }

    private static String host(SocketAddress address) {
        InetSocketAddress host = (InetSocketAddress) address;
        return HexFormat.of().formatHex(host.getAddress().getAddress()) + ":" + host.getPort();
    }

    private static void say(MessageExt message) {
        StringJoiner properties = new StringJoiner(",");
        for (Map.Entry<String, String> each : message.getProperties().entrySet()) {
            properties.add(text(each.getKey()) + ":" + text(each.getValue()));
        }
        System.out.println(String.join("\t", text(message.getKeys()), encoded(message.getBody()),
            message.getTopic(), message.getBrokerName(), "" + message.getQueueId(),
            "" + message.getQueueOffset(), "" + message.getCommitLogOffset(), message.getMsgId(),
            text(message.getTags()), "" + message.getBornTimestamp(),
            "" + message.getStoreTimestamp(), host(message.getBornHost()),
            host(message.getStoreHost()), "" + message.getSysFlag(), "" + message.getFlag(),
            "" + message.getReconsumeTimes(), "" + message.getPreparedTransactionOffset(),
            properties.toString(), "" + message.getBodyCRC()));
    }
}
