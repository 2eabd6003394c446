import java.nio.charset.StandardCharsets;
import java.util.List;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;

/** An official push consumer that says when it begins and ends each message, until it is killed. */
public class Workers {
    private static int pauseMs;

    public static void main(String[] arguments) throws Exception {
        pauseMs = Integer.parseInt(arguments[4]);
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(arguments[1]);
        consumer.setNamesrvAddr(arguments[0]);
        consumer.setPollNameServerInterval(1000);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(arguments[2], "*");
        if (arguments[3].equals("orderly")) {
            consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
                messages.forEach(Workers::work);
                return ConsumeOrderlyStatus.SUCCESS;
            });
        } else {
            consumer.setClientRebalance(false);
            consumer.setPopInvisibleTime(10_000);
            consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
                messages.forEach(Workers::work);
                return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            });
        }
        consumer.start();
        say("started");
    }

    private static void work(MessageExt message) {
        String what = message.getQueueId() + " " + new String(message.getBody(), StandardCharsets.UTF_8);
        say("begin " + what);
        try {
            Thread.sleep(pauseMs);
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
        }
        say("end " + what);
    }

    private static synchronized void say(String line) {
        System.out.println(System.currentTimeMillis() + " " + line);
        System.out.flush();
    }
}
