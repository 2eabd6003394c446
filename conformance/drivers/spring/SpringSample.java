package org.pyritemq.sample;

import java.util.List;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.spring.annotation.ConsumeMode;
import org.apache.rocketmq.spring.annotation.RocketMQMessageListener;
import org.apache.rocketmq.spring.annotation.RocketMQTransactionListener;
import org.apache.rocketmq.spring.core.RocketMQListener;
import org.apache.rocketmq.spring.core.RocketMQLocalTransactionListener;
import org.apache.rocketmq.spring.core.RocketMQLocalTransactionState;
import org.apache.rocketmq.spring.core.RocketMQTemplate;
import org.springframework.boot.CommandLineRunner;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.annotation.Bean;
import org.springframework.messaging.Message;
import org.springframework.messaging.support.MessageBuilder;
import org.springframework.stereotype.Component;

/** An application as its users write them: what it sends and what comes back is a line each. */
@SpringBootApplication
public class SpringSample {
    public static void main(String[] arguments) {
        SpringApplication.run(SpringSample.class, arguments);
    }

    /** What is sent with payloads of its own class. */
    public static class Order {
        public String name;
        public int count;
    }

    @Bean
    public CommandLineRunner sends(RocketMQTemplate template) {
        return arguments -> {
            say("sent plain " + template.syncSend("spring-plain:wanted", "plain").getSendStatus());
            say("sent unwanted " + template.syncSend("spring-plain:unwanted", "unwanted").getSendStatus());
            say("sent failing " + template.syncSend("spring-plain:wanted", "failing").getSendStatus());
            Order order = new Order();
            order.name = "tea";
            order.count = 3;
            say("sent order " + template.syncSend("spring-order", order).getSendStatus());
            List<Message<String>> batch = List.of(text("batch-0"), text("batch-1"), text("batch-2"));
            say("sent batch " + template.syncSend("spring-plain:wanted", batch).getSendStatus());
            say("sent delayed " + template.syncSend("spring-plain:wanted", text("delayed"), 3000, 1).getSendStatus());
            for (int number = 0; number < 5; number++) {
                template.syncSendOrderly("spring-ordered", "ordered-" + number, "one key");
            }
            say("sent transaction " + template.sendMessageInTransaction(
                "spring-plain:wanted", text("committed"), null).getLocalTransactionState());
            say("sent transaction " + template.sendMessageInTransaction(
                "spring-plain:wanted", text("rolled-back"), null).getLocalTransactionState());
        };
    }

    private static Message<String> text(String payload) {
        return MessageBuilder.withPayload(payload).build();
    }

    private static synchronized void say(String line) {
        System.out.println("sample: " + line);
    }

    @Component
    @RocketMQMessageListener(topic = "spring-plain", consumerGroup = "spring-plain-group",
        selectorExpression = "wanted")
    public static class Plain implements RocketMQListener<MessageExt> {
        @Override
        public void onMessage(MessageExt message) {
            String body = new String(message.getBody());
            say("received " + body + " " + message.getReconsumeTimes());
            if (body.equals("failing") && message.getReconsumeTimes() == 0) {
                throw new IllegalStateException("once");
            }
        }
    }

    @Component
    @RocketMQMessageListener(topic = "spring-order", consumerGroup = "spring-order-group")
    public static class Orders implements RocketMQListener<Order> {
        @Override
        public void onMessage(Order order) {
            say("received " + order.name + " x " + order.count);
        }
    }

    @Component
    @RocketMQMessageListener(topic = "spring-ordered", consumerGroup = "spring-ordered-group",
        consumeMode = ConsumeMode.ORDERLY)
    public static class Ordered implements RocketMQListener<String> {
        @Override
        public void onMessage(String body) {
            say("received " + body);
        }
    }

    @RocketMQTransactionListener
    public static class Transactions implements RocketMQLocalTransactionListener {
        @Override
        public RocketMQLocalTransactionState executeLocalTransaction(Message message, Object argument) {
            String body = new String((byte[]) message.getPayload());
            return body.equals("committed")
                ? RocketMQLocalTransactionState.COMMIT : RocketMQLocalTransactionState.ROLLBACK;
        }

        @Override
        public RocketMQLocalTransactionState checkLocalTransaction(Message message) {
            return RocketMQLocalTransactionState.ROLLBACK;
        }
    }
}
