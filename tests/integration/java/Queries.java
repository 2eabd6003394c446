import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.apache.rocketmq.client.QueryResult;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** Sends keyed messages with the official producer, then asks for them in every way that it knows. */
public class Queries {
    private static final String TOPIC = "Queried";

    public static void main(String[] arguments) throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer("queries");
        producer.setNamesrvAddr(arguments[0]);
        producer.start();
        List<SendResult> sent = new ArrayList<>();
        for (int number = 0; number < 20; number++) {
            Message message = new Message(TOPIC, "Tag" + number % 2, "order" + number + " 客户",
                ("body " + number).getBytes(StandardCharsets.UTF_8));
            sent.add(producer.send(message));
        }
        if (arguments.length > 1) {
            Thread.sleep(Long.parseLong(arguments[1]));
        }
        SendResult last = sent.get(19);
        System.out.println("ids " + last.getMsgId() + " " + last.getOffsetMsgId());
        print("by offset id", List.of(producer.viewMessage(TOPIC, last.getOffsetMsgId())));
        print("by unique id", List.of(producer.viewMessage(TOPIC, sent.get(7).getMsgId())));
        query(producer, "by key", "order7", 32, 0, Long.MAX_VALUE);
        query(producer, "by shared key", "客户", 32, 0, Long.MAX_VALUE);
        query(producer, "by shared key, three", "客户", 3, 0, Long.MAX_VALUE);
        query(producer, "by unknown key", "none", 32, 0, Long.MAX_VALUE);
        query(producer, "by key, long ago", "order7", 32, 0, 1000);
        producer.shutdown();
        System.out.println("done");
        Runtime.getRuntime().halt(0);
    }

    private static void query(DefaultMQProducer producer, String how, String key, int count,
        long begin, long end) throws Exception {
        try {
            QueryResult found = producer.queryMessage(TOPIC, key, count, begin, end);
            print(how, found.getMessageList());
        } catch (MQClientException error) {
            System.out.println(how + ": code " + error.getResponseCode());
        }
    }

    private static void print(String how, List<MessageExt> messages) {
        List<String> lines = new ArrayList<>();
        for (MessageExt message : messages) {
            String body = new String(message.getBody(), StandardCharsets.UTF_8);
            lines.add(body + " [" + message.getKeys() + " " + message.getTags() + "]");
        }
        Collections.sort(lines);
        System.out.println(how + ": " + lines);
    }
}
