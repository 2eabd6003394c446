import java.nio.charset.StandardCharsets;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.message.Message;

/** Official producers that send until their input ends, whatever happens to the broker. */
public class Senders {
    private static final int THREADS = 8;
    private static volatile boolean ended = false;

    public static void main(String[] arguments) throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer("senders");
        producer.setNamesrvAddr(arguments[0]);
        producer.setPollNameServerInterval(500);
        producer.setSendMsgTimeout(1000);
        producer.start();
        Thread[] senders = new Thread[THREADS];
        for (int number = 0; number < THREADS; number++) {
            String name = "s" + number;
            senders[number] = new Thread(() -> send(producer, name));
            senders[number].start();
        }
        while (System.in.read() >= 0) {
            // the end of the input is the sign
        }
        ended = true;
        for (Thread sender : senders) {
            sender.join();
        }
        System.out.println("done");
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    private static void send(DefaultMQProducer producer, String name) {
        for (long number = 0; !ended; number++) {
            String key = name + "-" + number;
            Message message = new Message("Crash", "*", key, key.getBytes(StandardCharsets.UTF_8));
            try {
                SendResult result = producer.send(message);
                if (result.getSendStatus() == SendStatus.SEND_OK) {
                    System.out.println("ok " + key + " " + result.getMessageQueue().getQueueId()
                        + " " + result.getQueueOffset());
                }
            } catch (Exception error) {
                pause();
            }
        }
    }

    private static void pause() {
        try {
            Thread.sleep(20);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }
}
