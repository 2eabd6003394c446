// Send latency percentiles, which the official benchmark Producer does not print (it knows average and maximum).
// The same official client, the same kind of send: N threads, one shared producer, synchronous, JSON-free headers.
// Run from source: java -cp 'JARS/*' LatencyProducer.java NAMESRV TOPIC THREADS SIZE MESSAGES WARM_UP
// Prints one line of JSON; times are in microseconds.

import java.util.Arrays;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.Message;

public class LatencyProducer {
    public static void main(String[] args) throws Exception {
        String topic = args[1];
        int threads = Integer.parseInt(args[2]);
        byte[] body = new byte[Integer.parseInt(args[3])];
        Arrays.fill(body, (byte) 'x');
        DefaultMQProducer producer = new DefaultMQProducer("latency_producer");
        producer.setNamesrvAddr(args[0]);
        producer.setCompressMsgBodyOverHowmuch(Integer.MAX_VALUE);
        producer.start();
        send(producer, topic, body, threads, Integer.parseInt(args[5]));
        long begin = System.nanoTime();
        long[] times = send(producer, topic, body, threads, Integer.parseInt(args[4]));
        double seconds = (System.nanoTime() - begin) / 1e9;
        producer.shutdown();
        Arrays.sort(times);
        System.out.printf(
            "{\"messages\": %d, \"seconds\": %.3f, \"p50_us\": %.1f, \"p90_us\": %.1f, \"p99_us\": %.1f, \"max_us\": %.1f}%n",
            times.length, seconds, at(times, 0.5), at(times, 0.9), at(times, 0.99), at(times, 1.0));
        System.exit(0);
    }

    static double at(long[] sorted, double share) {
        return sorted[(int) Math.min(sorted.length - 1, Math.round(share * sorted.length))] / 1e3;
    }

    static long[] send(DefaultMQProducer producer, String topic, byte[] body, int threads, int messages)
        throws InterruptedException {
        int each = messages / threads;
        long[] times = new long[each * threads];
        Thread[] workers = new Thread[threads];
        for (int t = 0; t < threads; t++) {
            int first = t * each;
            workers[t] = new Thread(() -> {
                for (int i = 0; i < each; i++) {
                    long begin = System.nanoTime();
                    try {
                        producer.send(new Message(topic, body));
                    } catch (Exception e) {
                        throw new IllegalStateException(e);
                    }
                    times[first + i] = System.nanoTime() - begin;
                }
            });
            workers[t].setUncaughtExceptionHandler((thread, error) -> {
                error.printStackTrace();
                System.exit(1);
            });
            workers[t].start();
        }
        for (Thread worker : workers) {
            worker.join();
        }
        return times;
    }
}
